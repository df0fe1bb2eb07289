"""External fragmentation: free memory in pieces."""
