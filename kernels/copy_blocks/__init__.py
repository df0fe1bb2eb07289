"""Duplicate whole blocks inside a cache: the copy of copy-on-write."""
