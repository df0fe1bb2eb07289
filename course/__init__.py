"""What is taught. No Streamlit, no Plotly: everything here can be used from a test or a notebook.

Each folder is a lesson or an experiment of the lab. Its `lesson.py` is the record that navigation, routes, the
summary, questions and sliders are derived from (`course/lesson.py`, `course/pages.py`). A lesson has a `scene.py`,
which runs the engine for the values of the lesson's controls and returns a `Scene`: a trace, with the step of each
value of the slider. An experiment has an `experiment.py`, which runs a model and returns a report. `questions.py`
asks about either.

`paper/` is no lesson: it has the claims of the paper and the simulations that judge them, for a page of its own.

Nothing here counts memory. Counts come from the fold of a trace: `engine/trace/usage.py` and
`engine/baselines/fragmentation.py`.
"""
