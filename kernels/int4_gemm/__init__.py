"""x @ weight.T, with weights of four or eight bits in groups of 32 and x rounded to eight bits in the same groups."""
