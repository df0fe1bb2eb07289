"""vLLM as a peer of benchmarks.throughput: PYTHON vllm_peer.py MODEL_FOLDER THREADS MAX_SEQS MAX_LEN, jobs on stdin."""

import os
import sys
import time

from peer_loop import serve

folder, threads, max_seqs, max_len = sys.argv[1], *map(int, sys.argv[2:])
# The engine in this process, as many threads as everybody else has, and nothing fetched.
os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "OMP_NUM_THREADS": str(threads),
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}

import vllm  # noqa: E402  (it reads the environment when imported)


def load():
    return vllm.LLM(
        model=folder, dtype="bfloat16", block_size=32, max_num_seqs=max_seqs, max_model_len=max_len,
        max_num_batched_tokens=max_seqs * max_len, seed=0,
    ).llm_engine  # fmt: skip


def run(prompts, num_tokens):
    params = vllm.SamplingParams(temperature=0.0, max_tokens=num_tokens, ignore_eos=True)
    written = {f"{time.monotonic_ns()}-{i}": 0 for i in range(len(prompts))}
    times = []
    started = time.perf_counter()
    for name, token_ids in zip(written, prompts, strict=True):
        engine.add_request(name, {"prompt_token_ids": token_ids}, params)
    while engine.has_unfinished_requests():
        for output in engine.step():
            written[output.request_id] = len(output.outputs[0].token_ids)
        times += [time.perf_counter() - started] * (min(written.values()) - len(times))
    return times


engine = load()
serve(f"vllm {vllm.__version__}", run)
