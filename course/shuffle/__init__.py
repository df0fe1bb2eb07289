"""Block permutation: move every block with its tables, and without them."""
