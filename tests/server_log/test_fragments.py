"""Published fragments of vLLM's and SGLang's output: every line about memory is explained, and every figure comes out.

Figures and shapes of lines as issue threads have them; names, hosts, and process ids are replaced. Each fragment says
what is read from each of its lines, so that a line explained wrongly, or one left out, fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from engine.server_log.explain import explain, notes_on
from engine.server_log.start import ServerLog, read_log

PREEMPTED = (
    "Sequence group {group} is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. "
    "This can affect the end-to-end performance. Increase gpu_memory_utilization or tensor_parallel_size to provide "
    "more KV cache memory. total_num_cumulative_preemption={count}"
)
STATS = (
    "(APIServer pid=1) INFO 03-17 15:38:{second} [loggers.py:259] Engine 000: Avg prompt "
    "throughput: {prompts} tokens/s, "
    "Avg generation throughput: {output} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
    "GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
)
PREFILL = (
    "[16:43:{second} TP0] Prefill batch. #new-seq: {seqs}, #new-token: {new}, #cached-token: {cached}, "
    "cache hit rate: {rate}%, token usage: {usage}, #running-req: {running}, #queue-req: {queue}"
)


@dataclass(frozen=True)
class Fragment:
    """`lines`: each line and the kinds read from it; none for a line that is left alone. `says`: of the last start."""

    name: str
    lines: tuple[tuple[str, str], ...]
    says: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    parts: dict[str, float] = field(default_factory=dict)


NINE = (
    Fragment(
        "G1 20,000: vLLM 0.6, vllm 10517",
        (
            ("Loading model weights took 14.9888 GB", "weights"),
            (
                "Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB "
                "peak_torch_memory=17.06GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB "
                "kv_cache_size=3.81GiB gpu_memory_utilization=0.90",
                "profile",
            ),
            ("GPU blocks: 1952, # CPU blocks: 2048", "blocks"),
            ("Maximum concurrency for 20000 tokens per request: 1.56x", "concurrency"),
        ),
        {"num_blocks": 1952, "num_tokens": 31_232, "full_requests": 1.56, "is_hybrid": False},
        parts={"weights": 14.9888, "activation": 2.0712, "non_torch": 0.35, "kv": 3.81, "outside": 2.358},
    ),
    Fragment(
        "G1 29,000: it does not start",
        (
            (
                "Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB "
                "peak_torch_memory=17.98GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB "
                "kv_cache_size=2.89GiB gpu_memory_utilization=0.90",
                "profile",
            ),
            ("# GPU blocks: 1478, # CPU blocks: 2048", "blocks"),
            ("Maximum concurrency for 29000 tokens per request: 0.82x", "concurrency"),
            (
                "The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV "
                "cache (23648). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
                "initializing the engine.",
                "too_long_tokens",
            ),
        ),
        {"num_blocks": 1478, "num_tokens": 23_648, "full_requests": 0.82},
        parts={"peak": 17.98, "non_torch": 0.35, "kv": 2.89, "outside": 2.358},
    ),
    Fragment(
        "G1 35,000: the line is cut",
        (
            (
                "Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB "
                "peak_torch_memory=15.05GiB memory_usage_post_pr",
                "profile",
            ),
        ),
        {"num_tokens": None, "full_requests": None},
    ),
    Fragment(
        "G2: vLLM V0, later wording, mellea 416",
        (
            ("INFO 02-11 10:17:54 [worker.py:294] Memory profiling takes 0.44 seconds", ""),
            (
                "INFO 02-11 10:17:54 [worker.py:294] the current vLLM instance can use total_gpu_memory (79.19GiB) x "
                "gpu_memory_utilization (0.80) = 63.35GiB",
                "budget",
            ),
            (
                "INFO 02-11 10:17:54 [worker.py:294] model weights take 1.12GiB; non_torch_memory takes 0.16GiB; "
                "PyTorch activation peak memory takes 0.23GiB; the rest of the memory reserved for KV Cache is "
                "61.84GiB.",
                "parts",
            ),
            ("INFO 02-11 10:17:54 [executor_base.py:113] # cuda blocks: 36184, # CPU blocks: 2340", "blocks"),
            (
                "INFO 02-11 10:17:54 [executor_base.py:118] Maximum concurrency for 8192 tokens per request: 70.67x",
                "concurrency",
            ),
            (
                "INFO 02-11 10:17:59 [model_runner.py:1671] Graph capturing finished in 2 secs, took 0.13 GiB",
                "graphs",
            ),
        ),
        {"num_blocks": 36_184, "num_tokens": 578_944, "full_requests": 70.67, "is_hybrid": False},
        parts={"weights": 1.12, "activation": 0.23, "non_torch": 0.16, "graphs": 0.13, "kv": 61.84, "outside": 15.71},
    ),
    Fragment(
        "G3a: vLLM V1, LMCache 1739",
        (
            (
                "(EngineCore_DP0 pid=1) INFO 10-03 16:22:17 [gpu_worker.py:298] Available KV cache memory: 6.51 GiB",
                "available",
            ),
            (
                "(EngineCore_DP0 pid=1) INFO 10-03 16:22:17 [kv_cache_utils.py:864] GPU KV cache size: 42,656 tokens",
                "kv_size",
            ),
            (
                "(EngineCore_DP0 pid=1) INFO 10-03 16:22:17 [kv_cache_utils.py:868] Maximum concurrency for 32,768 "
                "tokens per request: 1.30x",
                "concurrency",
            ),
        ),
        {"num_blocks": 2666, "num_tokens": 42_656, "full_requests": 1.3, "is_hybrid": False},
        parts={"kv": 6.51},
    ),
    Fragment(
        "G3b: no concurrency, vllm 33263",
        (
            ("INFO 01-28 16:08:46 [gpu_worker.py:358] Available KV cache memory: 18.78 GiB", "available"),
            ("INFO 01-28 16:08:46 [kv_cache_utils.py:1305] GPU KV cache size: 175,856 tokens", "kv_size"),
        ),
        {"num_blocks": 10_991, "num_tokens": 175_856, "full_requests": None},
    ),
    Fragment(
        "G3: before and after tokens were printed, and in one line, vllm 13596, 57047",
        (
            ("INFO 02-20 00:01:02 kv_cache_utils.py:522] # GPU blocks: 127626", "blocks"),
            ("INFO 02-20 00:01:02 x.py:5] Maximum concurrency for 2048 tokens per request: 997.08x", "concurrency"),
            ("INFO 02-19 23:56:55 kv_cache_utils.py:524] GPU KV cache size: 2,042,016 tokens", "kv_size"),
            (
                "[kv_cache_utils.py:2324] GPU KV cache size: 268,560 tokens, Maximum concurrency for 2,048 tokens per "
                "request: 131.13x",
                "kv_size concurrency",
            ),
            (
                "... or --kv-cache-memory=46423534080 (43.24 GiB) to fully utilize gpu memory. Current kv cache "
                "memory in use is 36.88 GiB.",
                "kv_suggestion",
            ),
        ),
        {"num_tokens": 268_560, "full_requests": 131.13},
        ("The size was printed 3 times, once by each worker; it counts once.",),
    ),
    Fragment(
        "G4: fp8, vllm 25350",
        (
            ("Available KV cache memory: 10.55 GiB", "available"),
            ("GPU KV cache size: 230,528 tokens", "kv_size"),
            ("[kv_cache_utils.py:868] Maximum concurrency for 100,000 tokens per request: 2.31x", "concurrency"),
        ),
        {"num_blocks": 14_408, "num_tokens": 230_528, "full_requests": 2.31, "is_hybrid": False},
    ),
    Fragment(
        "G4: fp8, the error",
        (
            (
                "ValueError: To serve at least one request with the models's max seq len (221000), (10.12 GiB KV cache "
                "is needed, which is larger than the available KV cache memory (5.59 GiB). Based on the available "
                "memory, the estimated maximum model length is 122080. Try increasing `gpu_memory_utilization` or "
                "decreasing `max_model_len` when initializing the engine.",
                "too_long_memory",
            ),
        ),
        {"num_tokens": None, "kv_gib": 5.59},
    ),
    Fragment(
        "G5: hybrid, vllm 40691 and 54458",
        (
            ("INFO [kv_cache_utils.py:1319] GPU KV cache size: 290,864 tokens", "kv_size"),
            ("INFO [kv_cache_utils.py:1324] Maximum concurrency for 32,768 tokens per request: 33.04x", "concurrency"),
        ),
        {"is_hybrid": True, "num_tokens": 290_864, "num_blocks": None, "usable_tokens": 1_082_654},
        (
            "This model has layers of several kinds. Go by the concurrency: 33.04 full-length requests, about "
            "1,083,000 tokens.",
        ),
    ),
    Fragment(
        "G5: companions of a hybrid model",
        (
            (
                "INFO [interface.py:915] Setting attention block size to 1600 tokens to ensure that attention page "
                "size is >= mamba page size.",
                "attention_block",
            ),
            (
                "INFO [interface.py:939] Padding mamba page size by 0.88% to ensure that mamba page size and attention "
                "page size are exactly equal.",
                "mamba_padding",
            ),
        ),
        {"is_hybrid": True, "tokens_per_block": 1600},
    ),
    Fragment(
        "G6: statistics, vllm 37307",
        tuple(
            (
                STATS.format(second=s, prompts=p, output=o, running=r, waiting=w, usage=u),
                "stats",
            )
            for s, p, o, r, w, u in (
                (10, 23998.2, 18.1, 10, 90, 19.3),
                (20, 23999.9, 35.4, 16, 84, 30.9),
                (30, 23999.8, 52.6, 22, 78, 42.5),
                (40, 23998.3, 69.6, 28, 72, 54.2),
                (50, 24000.7, 83.7, 34, 66, 65.4),
            )
        ),
        {"num_tokens": None},
    ),
    Fragment(
        "G6: older shapes, vllm 6206, 18674, 14226",
        (
            (
                "metrics.py:334] Avg prompt throughput: 6501.4 tokens/s, Avg generation throughput: 69.1 tokens/s, "
                "Running: 4 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 15.6%, CPU KV cache usage: "
                "0.0%",
                "stats",
            ),
            ("[metrics.py:502] Prefix cache hit rate: GPU: 0.00%, CPU: 90.00%", "hit_rates"),
            (
                "loggers.py:78] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: "
                "1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%, MM cache hit rate: "
                "0.0%",
                "stats",
            ),
        ),
    ),
    Fragment(
        "G7: preemptions, LIMO 29, rllm 93",
        (
            (PREEMPTED.format(group=221, count=101), "preempted"),
            (
                "(WorkerDict pid=1, ip=A.B.C.D) WARNING 04-14 20:06:19 scheduler.py:1484] "
                + PREEMPTED.format(group="cmpl-1-0", count=151)
                + " [repeated 2x across cluster]",
                "preempted",
            ),
            (PREEMPTED.split(" total_num")[0].format(group=7).replace("RECOMPUTE", "SWAP"), "preempted"),
        ),
        {"num_preemptions": 151},
    ),
    Fragment(
        "G8: vLLM, vllm 21348",
        (("Available KV cache memory: 8.11 GiB", "available"), ("GPU KV cache size: 178,880 tokens", "kv_size")),
        {"num_tokens": 178_880, "num_blocks": 11_180},
    ),
    Fragment(
        "G8: SGLang, vllm 21348, sglang 29575",
        (
            ("KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB", "sgl_pool"),
            (
                "[2026-06-28 15:16:45] max_total_num_tokens=2086558, chunked_prefill_size=8192, "
                "max_prefill_tokens=16384, max_running_requests=33, context_len=256000, available_gpu_mem=17.22 GB",
                "sgl_limits",
            ),
        ),
        {"num_tokens": 367_404, "num_blocks": None, "kv_gib": 16.46},
    ),
    Fragment(
        "G9a: SGLang, sglang 1612",
        tuple(
            (
                PREFILL.format(second=s, seqs=q, new=n, cached=c, rate=r, usage=u, running=k, queue=w),
                "sgl_prefill",
            )
            for s, q, n, c, r, u, k, w in (
                (29, 1, 2062, 0, "0.00", "0.00", 0, 0),
                (29, 4, 8192, 291, "2.76", "0.04", 1, 38),
                (30, 6, 8192, 2753, "14.16", "0.18", 4, 34),
                (30, 5, 8192, 897, "12.89", "0.33", 9, 30),
                (31, 5, 8192, 523, "11.36", "0.48", 13, 26),
                (32, 5, 8192, 632, "10.59", "0.62", 17, 22),
                (33, 5, 8192, 1832, "11.92", "0.77", 21, 18),
            )
        ),
        {"new_tokens": 51_214, "cached_tokens": 6928},
        ("Going by its prefill lines, 6,928 of 58,142 tokens were cache hits: 11.92 %.",),
    ),
    Fragment(
        "G9a: decode lines bound the pool, sglang 3909",
        tuple(
            (
                f"Decode batch. #running-req: 8, #token: {held}, token usage: {usage}, gen throughput (token/s): "
                "183.54, #queue-req: 0",
                "sgl_decode",
            )
            for held, usage in ((67724, "0.13"), (68044, "0.14"))
        ),
        {"pool_bounds": (67724 / 0.135, 68044 / 0.135)},
    ),
    Fragment(
        "G9b: metrics of SGLang, sglang 1853",
        (
            ("# HELP sglang:max_total_num_tokens Maximum total number of tokens", ""),
            ("# TYPE sglang:max_total_num_tokens gauge", ""),
            ('sglang:max_total_num_tokens{name="MODEL"} 570979.0', "metric"),
            ('sglang:max_prefill_tokens{name="MODEL"} 16384.0', "metric"),
            ('sglang:max_running_requests{name="MODEL"} 2231.0', "metric"),
            ('sglang:context_len{name="MODEL"} 131072.0', "metric"),
            ('sglang:prompt_tokens_total{name="MODEL"} 230794.0', "metric"),
            ('sglang_token_usage{model_name="M"} 0.28', "metric"),
            ('sglang:cache_hit_rate{model_name="M"} 0.007507552643049313', "metric"),
        ),
        {"num_tokens": 570_979, "num_blocks": None, "full_requests": 570_979 / 131_072},
    ),
)
FOUND_SINCE = (
    Fragment(
        "vllm 12330: 11.12 GiB and 11.12x by accident",
        (
            ("INFO 01-13 11:35:21 model_runner.py:1099] Loading model weights took 14.9595 GB", "weights"),
            ("INFO 01-13 11:35:23 worker.py:241] Memory profiling takes 1.32 seconds", ""),
            (
                "INFO 01-13 11:35:23 worker.py:241] the current vLLM instance can use total_gpu_memory (39.50GiB) x "
                "gpu_memory_utilization (0.90) = 35.55GiB",
                "budget",
            ),
            (
                "INFO 01-13 11:35:23 worker.py:241] model weights take 14.96GiB; non_torch_memory takes 0.10GiB; "
                "PyTorch activation peak memory takes 9.37GiB; the rest of the memory reserved for KV Cache is "
                "11.12GiB.",
                "parts",
            ),
            ("INFO 01-13 11:35:23 gpu_executor.py:76] # GPU blocks: 5691, # CPU blocks: 2048", "blocks"),
            (
                "INFO 01-13 11:35:23 gpu_executor.py:80] Maximum concurrency for 8192 tokens per request: 11.12x",
                "concurrency",
            ),
        ),
        {"num_blocks": 5691, "num_tokens": 91_056, "full_requests": 11.12, "is_hybrid": False},
        parts={"weights": 14.96, "activation": 9.37, "non_torch": 0.1, "kv": 11.12, "outside": 3.95},
    ),
    Fragment(
        "vllm 34076: pipeline parallel, the error with a dotless gap",
        (
            (
                "(EngineCore_DP0 pid=1) ValueError: To serve at least one request with the models's max seq len "
                "(262144), (24.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.18 "
                "GiB). Based on the available memory, the estimated maximum model length is 34736. Try increasing "
                "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine. See the docs.",
                "too_long_memory",
            ),
        ),
        {"kv_gib": 3.18},
    ),
    Fragment(
        "sglang 18263: weights, pool in bfloat16, what is left",
        (
            (
                "[2026-07-15 13:14:53] Load weight end. elapsed=19.09 s, type=Qwen3MoeForCausalLM, "
                "avail mem=230.20 GB, mem usage=56.98 GB.",
                "sgl_weights",
            ),
            ("self.server_args.mem_fraction_static 0.911", ""),
            (
                "[2026-07-15 13:14:54] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1669816, "
                "K size: 76.44 GB, V size: 76.44 GB",
                "sgl_pool",
            ),
            ("[2026-07-15 13:14:54] Memory pool end. avail mem=74.01 GB", "sgl_pool_end"),
            ("Capturing batches (bs=496 avail_mem=20.14 GB):   2%|  | 1/52 [00:03<03:17,  3.88s/it]", ""),
        ),
        {"num_tokens": 1_669_816, "kv_gib": 152.88},
        parts={"weights": 56.98, "kv": 152.88, "free": 74.01},
    ),
    Fragment(
        "sglang 18039: two pools, keys wider than values, four ranks",
        tuple(
            (f"[2026-01-31 13:50:39 TP{rank}] {text}", kind)
            for rank in range(4)
            for text, kind in (
                ("Use sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288", "sgl_windows"),
                ("KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: 5.59 GB", "sgl_pool"),
            )
        ),
        {"is_hybrid": True, "num_printed": 4, "kib_per_token": None},
        ("The size was printed 4 times, once by each worker; it counts once.",),
    ),
    Fragment(
        "sglang 26248: full and sliding usage, after a retraction",
        (
            (
                "[03:51:54] Decode batch, #running-req: 6, #full token: 2435072, full token usage: 0.92, "
                "swa token usage: 0.09, gen throughput (token/s): 24.33",
                "sgl_decode",
            ),
            (
                "[03:52:05] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 646, "
                "#new_token_ratio: 0.0980 -> 0.3487",
                "sgl_retract",
            ),
            (
                "[03:52:05] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: "
                "0.9998 -> 1.0000",
                "sgl_retract",
            ),
        ),
        {"num_preemptions": 3, "pool_bounds": (2_435_072 / 0.925, 2_435_072 / 0.915)},
    ),
    Fragment(
        "Qwen3.8-27B on vLLM of 2026-08: size and concurrency in one line, graphs set aside",
        (
            (
                "(EngineCore pid=1) INFO 08-17 02:57:00 [gpu_worker.py:578] Available KV cache memory: 19.54 GiB",
                "available",
            ),
            (
                "(EngineCore pid=1) INFO 08-17 02:57:00 [kv_cache_utils.py:1869] GPU KV cache size: 313,650 tokens, "
                "Maximum concurrency for 262,144 tokens per request: 1.20x",
                "kv_size concurrency",
            ),
            (
                "(EngineCore pid=1) INFO 08-17 02:54:36 [gpu_model_runner.py:6563] Skipping memory profiling for "
                "multimodal encoder and encoder cache.",
                "",
            ),
            (
                "(EngineCore pid=1) INFO 08-17 02:57:58 [gpu_worker.py:741] CUDA graph pool memory: 0.71 GiB "
                "(actual), 1.55 GiB (estimated), difference: 0.84 GiB (119.3%).",
                "graph_pool",
            ),
            (
                "(EngineCore pid=1) INFO 08-17 02:57:58 [gpu_worker.py:804] Free memory on device (79.99/80.0 GiB) on "
                "startup. Desired GPU memory utilization is (0.92, 73.6 GiB). Actual usage is 51.66 GiB for consumed "
                "memory (weights + non-torch), 2.4 GiB for peak activation, and 0.71 GiB for CUDAGraph memory. Replace "
                "gpu_memory_utilization config with `--kv-cache-memory=20064085607` (18.69 GiB) to fit into requested "
                "memory, or `--kv-cache-memory=26927570944` (25.08 GiB) to fully utilize gpu memory. Current kv cache "
                "memory in use is 19.54 GiB.",
                "startup_summary kv_suggestion",
            ),
            (
                "(EngineCore pid=1) INFO 08-17 02:57:59 [core.py:347] init engine (profile, create kv cache) "
                "took 203 s",
                "",
            ),
        ),
        {"num_tokens": 313_650, "full_requests": 1.2, "is_hybrid": False},
        parts={"weights": 51.66, "activation": 2.4, "graphs": 0.71, "kv": 19.54, "outside": 5.69},
    ),
    Fragment(
        "production-stack 617: metrics of vLLM 0.10 with deprecated copies",
        (
            ("# HELP vllm:gpu_prefix_cache_queries_created GPU prefix cache queries. DEPRECATED", ""),
            ('vllm:gpu_prefix_cache_queries_created{engine="0",model_name="M"} 1.7537953269352946e+09', ""),
            ('vllm:gpu_prefix_cache_hits_total{engine="0",model_name="M"} 0.0', "metric"),
            ('vllm:kv_cache_usage_perc{engine="0",model_name="M"} 9.75010481363281e-06', "metric"),
            ('vllm:prefix_cache_queries_total{engine="0",model_name="M"} 32.0', "metric"),
            ('vllm:num_preemptions_total{engine="0",model_name="M"} 12.0', "metric"),
            (
                'vllm:cache_config_info{block_size="16",num_gpu_blocks="102564",gpu_memory_utilization="0.9"} 1.0',
                "metric",
            ),
            ('vllm:e2e_request_latency_seconds_sum{engine="0",model_name="M"} 3.5', ""),
        ),
        {"num_preemptions": 12, "num_blocks": 102_564, "num_tokens": 1_641_024},
    ),
    Fragment(
        "club-3090 1047, 594: padding, and the size set by hand (vllm 39559)",
        (
            (
                "WARNING [kv_cache_utils.py:1208] Add 3 padding layers, may waste at most 6.25% KV cache memory",
                "padding_layers",
            ),
            ("INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512", "override"),
            ("INFO [gpu_model_runner.py:5993] Estimated CUDA graph memory: 0.73 GiB total", "graph_estimate"),
            ("INFO [gpu_model_runner.py:5405] Model loading took 19.75 GiB memory and 6.356814 seconds", "weights"),
            (
                "qwen3-1 | (VllmWorker rank=0 pid=1) INFO [gpu_model_runner.py:1347] Model loading took 14.2474 "
                "GiB and 5 seconds",
                "weights",
            ),
            (
                "WARNING [kv_cache_utils.py:1339] Hybrid KV cache manager is disabled for this hybrid model, "
                "This means",
                "no_hybrid",
            ),
        ),
        {"num_blocks": 512, "num_tokens": 8192},
    ),
)
FRAGMENTS = (*NINE, *FOUND_SINCE)


def text_of(fragment: Fragment) -> str:
    return "\n".join(line for line, _kinds in fragment.lines)


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda fragment: fragment.name)
def test_every_memory_line_is_explained_and_no_other(fragment: Fragment) -> None:
    log = read_log(text_of(fragment))
    assert [" ".join(reading.kind for reading in line.readings) for line in log.lines] == [
        kinds for _line, kinds in fragment.lines
    ]
    for line in log.known:
        for explanation in explain(log.starts[line.start], line):
            assert explanation.title and all(explanation.sentences)
            assert "{" not in " ".join((*explanation.sentences, explanation.misread))


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda fragment: fragment.name)
def test_the_figures_come_out(fragment: Fragment) -> None:
    log = read_log(text_of(fragment))
    [start] = log.starts
    for name, value in fragment.says.items():
        assert getattr(start, name) == (value if value is None else pytest.approx(value)), name
    assert tuple(notes_on(log.starts)) == fragment.notes
    if fragment.parts:
        assert {part.name: part.gib for part in start.parts} == pytest.approx(fragment.parts, abs=1e-9)


def said(log: ServerLog, number: int) -> str:
    line = log.lines[number]
    return " ".join(text for each in explain(log.starts[line.start], line) for text in each.sentences)


SAID = [
    (
        "G1 20,000",
        1,
        "23.58 GiB × 0.9 − 17.06 GiB (weights and activations at their peak) − 0.35 GiB (other) = 3.81 GiB",
    ),
    (
        "G1 20,000",
        2,
        "The pool has 1,952 blocks of 16 tokens: 31,232 tokens. One token takes about 128 KiB on each GPU.",
    ),
    (
        "G1 20,000",
        3,
        "The pool holds 1.56 requests of 20,000 tokens, the longest allowed. At 2,000 tokens each, 15 requests fit.",
    ),
    ("G1 29,000", 2, "That is less than one, so the server refuses to start."),
    (
        "G2",
        3,
        "The pool has 36,184 blocks of 16 tokens: 578,944 tokens. One token takes about 112 KiB on each GPU. 2,340",
    ),
    ("G3a", 1, "In blocks of 16 tokens that is 2,666 blocks. One token takes about 160 KiB on each GPU."),
    ("G3b", 0, "One token takes about 112 KiB on each GPU."),
    ("G4: fp8, vllm", 0, "One token takes about 48 KiB on each GPU."),
    (
        "G4: fp8, the error",
        0,
        "One request of 221,000 tokens needs 10.12 GiB, but only 5.59 GiB is available. Up to 122,080 tokens would",
    ),
    ("G5: hybrid", 0, "Going by the concurrency, full-length requests can hold about 1,083,000 tokens."),
    (
        "G6: statistics",
        0,
        "10 requests running, 90 waiting; running requests hold 19.3 % of the blocks. Requests wait although",
    ),
    ("G7", 1, "At least 151 preemptions since the start."),
    ("G8: vLLM", 0, "One token takes about 47.5 KiB on each GPU."),
    ("G8: SGLang", 0, "Keys take 8.23 GiB and values 8.23 GiB on each GPU. One token takes about 47 KiB on each GPU."),
    (
        "G8: SGLang",
        1,
        "The pool holds 2,086,558 tokens: 8.15 requests of 256,000 tokens, the longest allowed. At most 33 requests",
    ),
    (
        "G9a: SGLang",
        6,
        "Of the 10,024 tokens in this batch, 1,832 were cache hits: 18.3 %. Since the start it is 11.92 %.",
    ),
    ("G9a: decode", 1, "Going by lines of this kind, the pool holds between 501,659 and 504,030 tokens."),
    ("G9b", 2, "570,979 That is 4.36 full-length requests."),
    (
        "sglang 26248",
        1,
        "From now on, 0.3487 of each request's maximum output is counted when one is admitted; it was 0.098.",
    ),
]


@pytest.mark.parametrize(("name", "line", "words"), SAID)
def test_what_is_said(name: str, line: int, words: str) -> None:
    [fragment] = [each for each in FRAGMENTS if each.name.startswith(name)]
    assert words in said(read_log(text_of(fragment)), line)
