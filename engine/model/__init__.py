"""The model: configuration, tokenizer, layers, the KV store behind the block pool, and compiled steps."""
