"""Growth: a request takes a block when a token needs it."""
