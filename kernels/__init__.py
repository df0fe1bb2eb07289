"""Operations on a paged KV cache, each written several times over, and the choice between them.

Every operation is a folder. Its `reference.py` is plain PyTorch and is the definition; `cpu.py` (Numba) and
`triton_kernel.py` (Triton) compute the same thing fast. `interface.py` says what each operation takes and
gives, `backend.py` picks the twins that can run on this machine.
"""
