"""Preemption: recompute against swap in a pool too small for the requests."""
