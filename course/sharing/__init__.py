"""Sharing: common prefixes stored once, copied on write."""
