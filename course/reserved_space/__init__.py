"""Reserved space: one request in one contiguous reservation."""
