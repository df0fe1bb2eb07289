"""Operations on a paged KV cache, each in several implementations, and the choice between them.

Every operation is a folder. Its `reference.py` is plain PyTorch and defines it; `cpu.py` (Numba) and
`triton_kernel.py` (Triton) compute the same thing fast. `interface.py` says what each operation takes and
gives, `registry.py` which backends there are, `backend.py` picks the one that can run on this machine.
"""
