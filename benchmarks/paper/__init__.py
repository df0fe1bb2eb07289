"""What Kwon et al. 2023 claim about memory, run again with this engine: `python -m benchmarks.paper`.

A module a family of figures; each lists its `RECORDS`. `records.py` has them all in the paper's order. What the paper
says is quoted with how sure the number is, in the marks of `record.SURE`.
"""
