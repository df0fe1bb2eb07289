"""What Kwon et al. 2023 claim about memory, and the simulations that judge it, with this engine's scheduler and pools.

A module a family of figures; each lists its `RECORDS`. `records.py` has them all in the paper's order. What the paper
says is quoted with how sure the number is, in the marks of `record.SURE`. `python -m benchmarks.paper` measures all of
it and writes the results that `results.py` reads.
"""
