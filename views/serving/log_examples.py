"""Published lines to begin with: figures and shapes as issue threads have them, names and addresses left out."""

from __future__ import annotations

from collections.abc import Mapping

from engine.i18n import N_

EXAMPLES: Mapping[str, str] = {
    # vllm-project/vllm issue 10517
    N_("It does not start"): """\
Loading model weights took 14.9888 GB
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.06GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB gpu_memory_utilization=0.90
# GPU blocks: 1952, # CPU blocks: 2048
Maximum concurrency for 20000 tokens per request: 1.56x
Loading model weights took 14.9888 GB
Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.98GiB \
memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90
# GPU blocks: 1478, # CPU blocks: 2048
Maximum concurrency for 29000 tokens per request: 0.82x
The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). \
Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
""",
    # vllm-project/vllm issue 40691
    N_("A hybrid model"): """\
INFO [kv_cache_utils.py:1319] GPU KV cache size: 290,864 tokens
INFO [kv_cache_utils.py:1324] Maximum concurrency for 32,768 tokens per request: 33.04x
""",
    # vllm-project/vllm issue 37307
    N_("Requests wait"): "\n".join(
        f"Engine 000: Avg prompt throughput: {prompts} tokens/s, Avg generation throughput: {output} tokens/s, "
        f"Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
        for prompts, output, running, waiting, usage in (
            (23998.2, 18.1, 10, 90, 19.3),
            (23999.9, 35.4, 16, 84, 30.9),
            (23999.8, 52.6, 22, 78, 42.5),
            (23998.3, 69.6, 28, 72, 54.2),
            (24000.7, 83.7, 34, 66, 65.4),
        )
    ),
    # sgl-project/sglang issue 1612
    N_("SGLang"): "\n".join(
        f"[TP0] Prefill batch. #new-seq: {seqs}, #new-token: {new}, #cached-token: {cached}, cache hit rate: {rate}%, "
        f"token usage: {usage}, #running-req: {running}, #queue-req: {queue}"
        for seqs, new, cached, rate, usage, running, queue in (
            (1, 2062, 0, "0.00", "0.00", 0, 0),
            (4, 8192, 291, "2.76", "0.04", 1, 38),
            (6, 8192, 2753, "14.16", "0.18", 4, 34),
            (5, 8192, 897, "12.89", "0.33", 9, 30),
            (5, 8192, 523, "11.36", "0.48", 13, 26),
            (5, 8192, 632, "10.59", "0.62", 17, 22),
            (5, 8192, 1832, "11.92", "0.77", 21, 18),
        )
    ),
}
