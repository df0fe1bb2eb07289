"""What Kwon et al. 2023 claim about memory, run again with this engine: `python -m benchmarks.paper`.

The claims and the simulations are in `course/paper/`. Here is what runs all of them and writes the results, and what
measures times of this machine: steps of a model, and the rows that are times themselves.
"""
