"""Move whole blocks between the cache and the swap pool on another device."""
