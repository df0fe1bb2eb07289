"""The paged KV cache: block pool, prefix cache, block tables, swap space, and the invariants they keep. No torch."""
