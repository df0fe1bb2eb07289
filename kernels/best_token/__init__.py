"""The best token of each row of scores, and what makes scores probabilities: all that greedy decoding needs."""
