"""Add a block's output to the hidden states and normalise the sum for the next block, in one pass."""
