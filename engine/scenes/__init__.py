"""The pictures of the course: one file a lesson, each made by running the engine or its allocators.

A scene function takes the values of the lesson's controls and returns a `Scene`: the trace for the whole range of
the control that is dragged, and which step belongs to which value. Nothing here counts memory; the counting is in
`engine/usage.py` and `engine/waste.py`, from the fold of the trace.

    what_is_cached  reservation  fragmentation  growth  block_table  sharing  batch      the lessons
    figure_8  figure_9                                                                   figures of the paper
"""
