"""One stream of arrivals into four memories of the same size."""
