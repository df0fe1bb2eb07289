"""The largest score of each row and the log-sum-exp of the row: all that greedy decoding needs."""
