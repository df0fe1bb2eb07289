"""Turn queries and keys to their positions and put keys and values into the cache, in one pass over the QKV product."""
