"""Attention that finds keys and values through each sequence's block table."""
