"""Memory across a batch: the same requests in equal reservations and in blocks."""
