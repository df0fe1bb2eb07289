"""Four-bit weights as bfloat16, for products over so many tokens that unpacking pays."""
