"""All layers of a Llama model in one call: for few tokens, calls cost as much as arithmetic."""
