"""llama.cpp as a peer of benchmarks.throughput: PYTHON llamacpp_peer.py GGUF THREADS MAX_SEQS MAX_LEN, jobs on stdin.

The low-level interface, because the high-level one runs one sequence: all sequences advance in one `llama_decode`.
"""

import sys
import time

from peer_loop import serve

import llama_cpp as ll  # isort: skip
import numpy as np

path, (threads, max_seqs, max_len) = sys.argv[1], map(int, sys.argv[2:])
TOKENS_AT_ONCE = 512


def load():
    quiet = ll.llama_log_callback(lambda *_: None)
    ll.llama_log_set(quiet, None)
    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(path.encode(), ll.llama_model_default_params())
    params = ll.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch = max_seqs * max_len, TOKENS_AT_ONCE, TOKENS_AT_ONCE
    params.n_seq_max, params.n_threads, params.n_threads_batch = max_seqs, threads, threads
    return model, ll.llama_init_from_model(model, params), quiet


def decode(entries):
    """Run (token, position, sequence, wants a next token); returns the best next token of each that wants one."""
    batch.n_tokens = len(entries)
    for i, (token, position, sequence, wants) in enumerate(entries):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, position, 1, wants
        batch.seq_id[i][0] = sequence
    if ll.llama_decode(context, batch) != 0:
        raise RuntimeError("llama_decode failed")
    rows = [i for i, entry in enumerate(entries) if entry[3]]
    return [int(np.ctypeslib.as_array(ll.llama_get_logits_ith(context, i), (vocabulary,)).argmax()) for i in rows]


def prefill(prompts):
    """All prompts, as many tokens at once as the batch holds; returns each sequence's first new token."""
    entries = [(t, i, s, i == len(ids) - 1) for s, ids in enumerate(prompts) for i, t in enumerate(ids)]
    parts = (entries[i : i + TOKENS_AT_ONCE] for i in range(0, len(entries), TOKENS_AT_ONCE))
    return [token for part in parts for token in decode(part)]


def run(prompts, num_tokens):
    ll.llama_memory_clear(ll.llama_get_memory(context), True)
    started = time.perf_counter()
    tokens = prefill(prompts)
    times = [time.perf_counter() - started]
    for new in range(num_tokens - 1):
        tokens = decode([(t, len(prompts[s]) + new, s, True) for s, t in enumerate(tokens)])
        times.append(time.perf_counter() - started)
    return times


model, context, log = load()
vocabulary = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
batch = ll.llama_batch_init(TOKENS_AT_ONCE, 0, 1)
serve(f"llama.cpp (llama-cpp-python {ll.__version__})", run)
