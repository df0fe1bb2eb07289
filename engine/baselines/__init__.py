"""Contiguous KV memory, the paper's baselines: allocators, reservations, their scheduler, and where their slots go."""
