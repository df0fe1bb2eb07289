"""Paged against contiguous keys and values: the same tokens, the same logits to rounding."""
