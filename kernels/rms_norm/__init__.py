"""Scale each token's hidden state to unit root mean square."""
