"""What fits: from a model's `config.json` and the memory of a GPU to blocks, tokens and requests at once.

model_shape   the layers of any model, by what each stores for a token or for a request
kv_groups     layers in groups that share one pool of blocks, and how many blocks a request takes
plan          memory of a GPU -> the pool, requests at once, and what runs out first

shape = read_shape(json.loads(text))
pool = pool_of(shape, kv_bytes=6 * 1024**3, max_model_len=32_768)
pool.num_tokens, pool.concurrency
"""
