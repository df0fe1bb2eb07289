"""x @ weight.T in bfloat16 with sums in float32, the weight in tiles that suit the processor's own instruction."""
