"""Trace files on a page: open one, look at any step, take one away."""
