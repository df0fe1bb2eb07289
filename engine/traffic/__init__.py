"""A server's own traffic: from a file of prompts or of a trace to the prefix-cache hit rate by pool size.

    formats         JSONL with prompts, ShareGPT, Mooncake's hash_ids, Azure's columns, vLLM's prefix_repetition options
    blocks          prompts as numbers of blocks: equal numbers are equal content, all before it included
    hit_curve       hits and evictions for each size of the pool, by the rules of engine/kv_cache
    shared_prefix   what a system prompt costs
    cache_replay    the same requests through engine/kv_cache itself, and through the engine many at once

`python -m engine.traffic FILE` prints the table. A file is read line by line and never stored or sent.
"""
