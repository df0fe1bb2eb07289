"""The KV cache: what one token costs."""
