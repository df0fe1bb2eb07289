"""All layers of a Llama model over four-bit weights in one call: for few tokens, calls cost as much as arithmetic."""
