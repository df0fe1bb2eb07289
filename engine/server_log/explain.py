"""What one line says in plain words, which settings change it and which way, and what readers take it for by mistake.

explain(log.starts[line.start], line)  ->  one Explanation for each reading of the line
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from engine.i18n import N_, _, blocks_counted, counted, tokens_counted
from engine.server_log.shapes import Value
from engine.server_log.start import LogLine, ServerStart

Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Setting:
    """`name`: the option as a command line has it. `direction`: "up", "down", "on" or "off". `effect`: what follows."""

    name: str
    direction: str
    effect: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """`sentences` and `misread` are in the server's language; `misread` is empty where nothing is often misread."""

    title: str
    sentences: tuple[str, ...]
    settings: tuple[Setting, ...] = ()
    misread: str = ""


MORE_KV = Setting("--gpu-memory-utilization", "up", N_("more memory for the KV cache"))
SHORTER = Setting("--max-model-len", "down", N_("a full-length request needs less, so more of them fit"))
SMALLER_STEPS = Setting("--max-num-batched-tokens", "down", N_("a lower activation peak, so more for the KV cache"))
MORE_GPUS = Setting(
    "--tensor-parallel-size", "up", N_("weights and, up to the number of KV heads, the cache are split")
)
FP8_CACHE = Setting("--kv-cache-dtype fp8", "on", N_("half the bytes per token of 16 bits, so twice the tokens"))
FEWER_SEQS = Setting("--max-num-seqs", "down", N_("fewer requests at once, so fewer preemptions"))
CACHING = Setting("--enable-prefix-caching", "on", N_("common prefixes of prompts are computed once"))
NO_GRAPHS = Setting("--enforce-eager", "on", N_("no CUDA graphs: their memory is free, decoding is slower"))
SGL_FRACTION = Setting("--mem-fraction-static", "up", N_("more memory for weights and KV cache together"))
SGL_CAUTION = Setting("--schedule-conservativeness", "up", N_("fewer requests are admitted, so fewer are retracted"))
SGL_BOLDER = Setting("--schedule-conservativeness", "down", N_("more requests are admitted while memory is unused"))
SGL_RUNNING = Setting("--max-running-requests", "down", N_("fewer requests at once"))


def explain(start: ServerStart, line: LogLine) -> list[Explanation]:
    """One explanation for each thing the line says; `start` is the one that the line belongs to."""
    return [_EXPLAIN[reading.kind](reading.values, start) for reading in line.readings]


def notes_on(starts: tuple[ServerStart, ...]) -> list[str]:
    """What only several lines together show: starts that differ, copies of one figure, hybrid models."""
    return [*_of_starts(starts), *_of_last(starts[-1])]


# -- vLLM: weights and the profile run --


def _weights(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Weights"),
        (
            _("The weights take {weights} on each GPU. Activations and the KV cache share the rest.").format(
                weights=_gib(values["weights_gib"])
            ),
        ),
        (MORE_GPUS, Setting("--quantization", "on", N_("smaller weights leave more for the KV cache"))),
        _("The line may say GB, but it means GiB: units of 1,024 × 1,024 × 1,024 bytes."),
    )


def _max_model_len(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Longest request"),
        (
            _("One request may have up to {longest}, prompt and output together.").format(
                longest=tokens_counted(int(values["max_model_len"]))
            ),
        ),
        (SHORTER,),
        _("Nothing is reserved for this length: a request takes blocks only as it grows."),
    )


def _chunked_prefill(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Tokens in one step"),
        (
            _(
                "A step computes at most {n}. The profile run measures activation memory at this size, so it "
                "decides how much is left for the KV cache."
            ).format(n=tokens_counted(int(values["num_batched"]))),
        ),
        (SMALLER_STEPS,),
    )


def _profile(values: Values, start: ServerStart) -> Explanation:
    sentences = [_("The server ran one step of the largest size and measured its peak memory.")]
    if {"peak_gib", "non_torch_gib", "kv_gib", "utilization"} <= values.keys():
        sentences.append(
            _(
                "{total} × {share} − {peak} (weights and activations at their peak) − {other} (other) = {kv} "
                "for the KV cache."
            ).format(
                total=_gib(values["total_gib"]),
                share=values["utilization"],
                peak=_gib(values["peak_gib"]),
                other=_gib(values["non_torch_gib"]),
                kv=_gib(values["kv_gib"]),
            )
        )
    return Explanation(_("Profile run"), tuple(sentences), (MORE_KV, SMALLER_STEPS, SHORTER), _(_NOT_MONOTONE))


def _budget(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Memory the server may use"),
        (
            _("{total} × {share} = {budget}: weights, activations and the KV cache share it.").format(
                total=_gib(values["total_gib"]), share=values["utilization"], budget=_gib(values["budget_gib"])
            ),
        ),
        (MORE_KV,),
        _("This version captures CUDA graphs later; they come on top."),
    )


def _parts(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("How memory is divided"),
        (
            _(
                "Weights {weights}, other libraries {other}, peak activations {peak}; {kv} is left for the KV cache."
            ).format(
                weights=_gib(values["weights_gib"]),
                other=_gib(values["non_torch_gib"]),
                peak=_gib(values["activation_gib"]),
                kv=_gib(values["kv_gib"]),
            ),
        ),
        (MORE_KV, SMALLER_STEPS, SHORTER),
        _(_NOT_MONOTONE),
    )


def _available(values: Values, start: ServerStart) -> Explanation:
    if float(values["kv_gib"]) <= 0:
        sentence = _(
            "Nothing is left for the KV cache: weights and activations need all the memory the server may use."
        )
    else:
        sentence = _("On each GPU, {kv} is left for the KV cache after weights, activations and a reserve.").format(
            kv=_gib(values["kv_gib"])
        )
    return Explanation(
        _("Memory for the KV cache"),
        (sentence, *_per_token(start)),
        (MORE_KV, SMALLER_STEPS, FP8_CACHE, MORE_GPUS),
        _(
            "All of it is allocated at start-up, whatever the load: a server with one short request holds as "
            "much memory."
        ),
    )


def _startup_summary(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        _("{free} of {total} was free at the start; the server may use {budget}, a share of {share}.").format(
            free=_gib(values["free_gib"]),
            total=_gib(values["total_gib"]),
            budget=_gib(values["budget_gib"]),
            share=values["utilization"],
        )
    ]
    if "activation_gib" in values:
        used = values["consumed_gib"] if "consumed_gib" in values else values["weights_gib"]
        sentences.append(
            _("Weights, and what this line counts with them, take {used}; peak activations take {peak}.").format(
                used=_gib(used), peak=_gib(values["activation_gib"])
            )
        )
    if "graphs_gib" in values:
        sentences.append(_("CUDA graphs take {graphs}.").format(graphs=_gib(values["graphs_gib"])))
    return Explanation(
        _("Memory after the start"),
        tuple(sentences),
        (MORE_KV,),
        _("The share is of the whole GPU, not of its free memory: what other processes use counts against it."),
    )


def _kv_suggestion(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        _("Set to {amount}, the KV cache would take all that is left on this GPU.").format(
            amount=_gib(values["full_gib"])
        )
    ]
    if "kv_gib" in values:
        sentences.append(_("Now it takes {kv}.").format(kv=_gib(values["kv_gib"])))
    return Explanation(
        _("The KV cache could be larger"),
        tuple(sentences),
        (
            Setting(
                "--kv-cache-memory-bytes", "up", N_("sets the size itself; --gpu-memory-utilization is not used then")
            ),
        ),
        _(
            "The number holds for this GPU, model and load only: elsewhere it may not fit, and the server does "
            "not start."
        ),
    )


def _graphs(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("CUDA graphs"),
        (_("The captured graphs take {graphs}.").format(graphs=_gib(values["graphs_gib"])),),
        (NO_GRAPHS, FEWER_SEQS),
        _(
            "In versions that capture them after allocating the cache, this memory is not part of "
            "gpu_memory_utilization."
        ),
    )


def _graph_pool(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("CUDA graphs"),
        (
            _(
                "The graphs take {graphs}; {estimated} had been set aside for them before the cache was allocated."
            ).format(graphs=_gib(values["graphs_gib"]), estimated=_gib(values["estimated_gib"])),
        ),
        (NO_GRAPHS,),
    )


def _graph_estimate(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("CUDA graphs, estimated"),
        (
            _("{estimated} is set aside for graphs, so the KV cache is smaller by as much.").format(
                estimated=_gib(values["estimated_gib"])
            ),
        ),
        (NO_GRAPHS,),
    )


# -- vLLM: the pool --


def _blocks(values: Values, start: ServerStart) -> Explanation:
    number = int(values["num_blocks"])
    sentences = [
        _("The pool has {blocks} of {size}: {tokens}.").format(
            blocks=blocks_counted(number),
            size=tokens_counted(start.tokens_per_block),
            tokens=tokens_counted(number * start.tokens_per_block),
        ),
        *_per_token(start),
    ]
    if "num_cpu_blocks" in values:
        sentences.append(
            _("{blocks} are in CPU memory, for swapped-out requests.").format(
                blocks=blocks_counted(int(values["num_cpu_blocks"]))
            )
        )
    return Explanation(_("Size of the pool, in blocks"), tuple(sentences), (MORE_KV, FP8_CACHE, MORE_GPUS), _(_COPIES))


def _override(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Size of the pool, set by hand"),
        (
            _("Profiling allowed {profiled}; the override sets {blocks}.").format(
                profiled=blocks_counted(int(values["profiled"])), blocks=blocks_counted(int(values["num_blocks"]))
            ),
        ),
        (Setting("--num-gpu-blocks-override", "off", N_("the profiled size is used again")),),
    )


def _kv_size(values: Values, start: ServerStart) -> Explanation:
    tokens = int(values["num_tokens"])
    sentences = [_("All requests together can hold {tokens}.").format(tokens=tokens_counted(tokens))]
    if start.is_hybrid and start.usable_tokens is not None and abs(start.usable_tokens - tokens) > tokens // 100:
        sentences.append(
            _(
                "Layers of several kinds share this pool, and this version counts tokens as if each kind had "
                "an equal part. Going by the concurrency, full-length requests can hold about {usable}."
            ).format(usable=tokens_counted(_rounded(start.usable_tokens)))
        )
    elif start.num_blocks is not None:
        sentences.append(
            _("In blocks of {size} that is {blocks}.").format(
                size=tokens_counted(start.tokens_per_block), blocks=blocks_counted(start.num_blocks)
            )
        )
    return Explanation(
        _("Size of the pool, in tokens"),
        (*sentences, *_per_token(start)),
        (MORE_KV, FP8_CACHE, MORE_GPUS),
        _(_COPIES)
        if not start.is_hybrid
        else _("With layers of several kinds, tokens times bytes per token is not the memory."),
    )


def _concurrency(values: Values, start: ServerStart) -> Explanation:
    longest, times = int(values["max_model_len"]), float(values["concurrency"])
    sentences = [
        _("The pool holds {times} requests of {longest}, the longest allowed.").format(
            times=f"{times:.2f}", longest=tokens_counted(longest)
        )
    ]
    if times < 1:
        sentences.append(_("That is less than one, so the server refuses to start."))
    elif start.usable_tokens is not None:
        shorter = max(longest // 10, 1)
        sentences.append(
            _("At {shorter} each, {count} fit.").format(
                shorter=tokens_counted(shorter),
                count=counted("{n} request", "{n} requests", start.usable_tokens // shorter),
            )
        )
    return Explanation(
        _("Maximum concurrency"),
        tuple(sentences),
        (MORE_KV, SHORTER, FP8_CACHE),
        _(
            "It is not a limit on requests: more of the shorter ones fit, up to max_num_seqs. Nor is it a "
            "promise of speed."
        ),
    )


def _attention_block(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Block size of a hybrid model"),
        (
            _(
                "A block holds {n}: it was made as large as the state of a linear-attention layer, so that "
                "both kinds of layers can share one pool."
            ).format(n=tokens_counted(int(values["attention_block"]))),
        ),
        (),
        _("Prefix caching works in whole blocks: a common prefix shorter than this is never shared."),
    )


def _mamba_padding(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Padding of linear-attention state"),
        (
            _("The state of a layer is padded by {percent} to fill a block.").format(
                percent=_percent(values["percent"])
            ),
        ),
    )


def _padding_layers(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Padding of layer groups"),
        (
            _(
                "Groups of layers must be equally large, so {n} of padding are added; at most {percent} of "
                "the cache is lost."
            ).format(
                n=counted("{n} layer", "{n} layers", int(values["num_layers"])), percent=_percent(values["percent"])
            ),
        ),
    )


def _no_hybrid(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Sliding windows save no memory here"),
        (
            _(
                "Layers with a sliding window keep the keys and values of every token, so a request takes as "
                "much as with full attention."
            ),
        ),
        (Setting("--disable-hybrid-kv-cache-manager", "off", N_("blocks behind the window are freed")),),
    )


# -- vLLM: it does not start --


def _too_long_tokens(values: Values, start: ServerStart) -> Explanation:
    longest, tokens = int(values["max_model_len"]), int(values["num_tokens"])
    return Explanation(
        _("One request does not fit: the server stops"),
        (
            _("A request may have {longest}, but the pool holds {tokens}.").format(
                longest=tokens_counted(longest), tokens=tokens_counted(tokens)
            ),
        ),
        (MORE_KV, SHORTER, FP8_CACHE, MORE_GPUS),
        _(_NOT_MONOTONE),
    )


def _too_long_memory(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        _("One request of {longest} needs {needed}, but only {kv} is available.").format(
            longest=tokens_counted(int(values["max_model_len"])),
            needed=_gib(values["needed_gib"]),
            kv=_gib(values["kv_gib"]),
        )
    ]
    if "fitting_len" in values:
        sentences.append(_("Up to {n} would fit.").format(n=tokens_counted(int(values["fitting_len"]))))
    return Explanation(
        _("One request does not fit: the server stops"),
        tuple(sentences),
        (MORE_KV, SHORTER, FP8_CACHE, MORE_GPUS),
        _(
            "The precision of the cache is already counted. What may differ from the last start is the "
            "memory: activations take more at a longer max_model_len."
        ),
    )


def _no_memory(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("No memory left for the cache: the server stops"),
        (_("Weights and activations need all the memory the server may use; not one block is left."),),
        (MORE_KV, MORE_GPUS, SMALLER_STEPS, SHORTER),
    )


def _out_of_memory(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Out of memory outside the cache"),
        (
            _(
                "PyTorch could not allocate {amount} more. The KV cache was allocated at start-up; this is "
                "memory for the computation."
            ).format(amount=values["amount"]),
        ),
        (
            Setting("--gpu-memory-utilization", "down", N_("a smaller cache leaves room for the computation")),
            SMALLER_STEPS,
        ),
        _("This is not a full KV cache: when that is full, requests wait or are preempted, and nothing fails."),
    )


# -- vLLM: while it runs --


def _stats(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        _("{running} running, {waiting} waiting; running requests hold {usage} of the blocks.").format(
            running=counted("{n} request", "{n} requests", int(values["running"])),
            waiting=values["waiting"],
            usage=_percent(values["usage"]),
        )
    ]
    if int(values["waiting"]) and float(values["usage"]) < 90:
        sentences.append(
            _(
                "Requests wait although blocks are free: another limit holds them back, such as "
                "max_num_batched_tokens or max_num_seqs."
            )
        )
    elif int(values["waiting"]):
        sentences.append(_("Requests wait because the pool is nearly full."))
    if "hit_rate" in values:
        sentences.append(
            _("Of the prompt tokens looked up lately, {rate} were cache hits.").format(
                rate=_percent(values["hit_rate"])
            )
        )
    return Explanation(
        _("Usage of the pool"),
        tuple(sentences),
        (FEWER_SEQS, MORE_KV, CACHING),
        _(
            "High usage is not a goal: it says how many blocks requests hold now. Cached blocks that no "
            "request holds count as free. A preempted request that hits its own blocks again raises the hit "
            "rate, too."
        ),
    )


def _hit_rates(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Prefix cache hit rate"),
        (
            _("{gpu} of the lookups hit in GPU memory, {cpu} in CPU memory.").format(
                gpu=_percent(values["hit_rate"]), cpu=_percent(values["cpu_hit_rate"])
            ),
        ),
        (CACHING,),
        _(
            "The CPU share is of the lookups that reach CPU memory, which are fewer: it may be high while "
            "hardly anything is shared."
        ),
    )


def _preempted(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        _("A request gave up its blocks because others needed them to go on. It is recomputed later.")
        if values["mode"] == "RECOMPUTE"
        else _("A request's blocks were copied to CPU memory because others needed room. They are copied back later.")
    ]
    if "count" in values:
        sentences.append(
            _("At least {n} since the start.").format(
                n=counted("{n} preemption", "{n} preemptions", int(values["count"]))
            )
        )
    return Explanation(
        _("Preemption"),
        tuple(sentences),
        (MORE_KV, FEWER_SEQS, MORE_GPUS, FP8_CACHE),
        _(
            "The line is printed for every 50th preemption only: 1, 51, 101. Three lines mean more than a "
            "hundred preemptions. Answers are the same, only later. Newer versions report preemptions in "
            "vllm:num_preemptions_total alone."
        ),
    )


# -- SGLang --


def _sgl_weights(values: Values, start: ServerStart) -> Explanation:
    sentences = []
    if "weights_gib" in values:
        sentences.append(_("The weights take {weights} on each GPU.").format(weights=_gib(values["weights_gib"])))
    sentences.append(_("{left} is free.").format(left=_gib(values["left_gib"])))
    return Explanation(_("Weights"), tuple(sentences), (SGL_FRACTION, Setting("--tp-size", "up", MORE_GPUS.effect)))


def _sgl_pool(values: Values, start: ServerStart) -> Explanation:
    tokens = int(values["num_tokens"])
    sentences = [_("All requests together can hold {tokens}.").format(tokens=tokens_counted(tokens))]
    if "k_gib" in values:
        sentences.append(
            _("Keys take {k} and values {v} on each GPU.").format(k=_gib(values["k_gib"]), v=_gib(values["v_gib"]))
        )
    return Explanation(
        _("Size of the pool, in tokens"),
        (*sentences, *_per_token(start)),
        (SGL_FRACTION, Setting("--kv-cache-dtype fp8_e4m3", "on", FP8_CACHE.effect)),
        _("GB means GiB here. Each GPU prints the line for its own part: do not add the tokens up."),
    )


def _sgl_windows(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Two pools: full attention and sliding windows"),
        (
            _("Layers with full attention hold {full}, layers with a sliding window {window}.").format(
                full=tokens_counted(int(values["num_tokens"])), window=tokens_counted(int(values["window_tokens"]))
            ),
        ),
        (
            Setting(
                "--swa-full-tokens-ratio", "down", N_("a smaller pool for windows, so a larger one for full attention")
            ),
        ),
        _("Each pool has its own usage; the fuller one is the limit."),
    )


def _sgl_pool_end(values: Values, start: ServerStart) -> Explanation:
    return Explanation(
        _("Memory left by the pool"),
        (_("{left} is left on each GPU for activations and CUDA graphs.").format(left=_gib(values["left_gib"])),),
        (SGL_FRACTION,),
    )


def _sgl_graphs(values: Values, start: ServerStart) -> Explanation:
    sentences = [_("{left} is left on each GPU after the graphs.").format(left=_gib(values["left_gib"]))]
    if "graphs_gib" in values:
        sentences.insert(0, _("The captured graphs take {graphs}.").format(graphs=_gib(values["graphs_gib"])))
    return Explanation(
        _("CUDA graphs"), tuple(sentences), (Setting("--cuda-graph-max-bs", "down", N_("fewer graphs, less memory")),)
    )


def _sgl_limits(values: Values, start: ServerStart) -> Explanation:
    tokens, longest = int(values["num_tokens"]), int(values["max_model_len"])
    sentences = [
        _("The pool holds {tokens}: {times} requests of {longest}, the longest allowed.").format(
            tokens=tokens_counted(tokens), times=f"{tokens / longest:.2f}", longest=tokens_counted(longest)
        ),
        _("At most {n} run at once.").format(n=counted("{n} request", "{n} requests", int(values["max_running"]))),
    ]
    if "left_gib" in values:
        sentences.append(_("{left} is left on each GPU beside the pool.").format(left=_gib(values["left_gib"])))
    return Explanation(
        _("Limits of the server"),
        tuple(sentences),
        (SGL_FRACTION, SGL_RUNNING),
        _(
            "max_running_requests is not how many fit: it limits short requests, memory limits long ones. "
            "available_gpu_mem is what is left after the pool, not the pool."
        ),
    )


def _sgl_prefill(values: Values, start: ServerStart) -> Explanation:
    new, cached = int(values["new_tokens"]), int(values["cached_tokens"])
    sentences = [
        _("Of the {tokens} in this batch, {cached} were cache hits: {own}.").format(
            tokens=tokens_counted(new + cached),
            cached=f"{cached:,}",
            own=f"{100 * cached / max(new + cached, 1):.1f} %",
        )
    ]
    if "hit_rate" in values:
        sentences.append(_("Since the start it is {rate}.").format(rate=_percent(values["hit_rate"])))
    if "usage" in values:
        sentences.append(
            _("Before this batch, {usage} of the pool was in use.").format(
                usage=f"{100 * float(values['usage']):.0f} %"
            )
        )
    return Explanation(
        _("A prefill batch"),
        tuple(sentences),
        (SGL_BOLDER, SGL_FRACTION),
        _(
            "The printed cache hit rate is over all batches since the start. Usage is taken before the "
            "batch, so it lags behind."
        ),
    )


def _sgl_decode(values: Values, start: ServerStart) -> Explanation:
    usage = float(values["usage"])
    sentences = [
        _("{running} hold {tokens}, {usage} of the pool.").format(
            running=counted("{n} running request", "{n} running requests", int(values["running"])),
            tokens=tokens_counted(int(values["held_tokens"])),
            usage=f"{100 * usage:.0f} %",
        )
    ]
    if start.pool_bounds is not None and start.num_tokens is None:
        low, high = start.pool_bounds
        sentences.append(
            _("Going by lines of this kind, the pool holds between {low} and {high}.").format(
                low=f"{low:,.0f}", high=tokens_counted(round(high))
            )
        )
    if "window_usage" in values:
        sentences.append(
            _("{usage} of the sliding-window pool is in use.").format(
                usage=f"{100 * float(values['window_usage']):.0f} %"
            )
        )
    if int(values.get("waiting", 0)):
        sentences.append(counted("{n} request waits.", "{n} requests wait.", int(values["waiting"])))
    return Explanation(
        _("A decode batch"),
        tuple(sentences),
        (SGL_FRACTION, SGL_BOLDER) if usage < 0.9 else (SGL_FRACTION, SGL_CAUTION),
        _("Cached tokens that no request holds may not count: the pool can be full of them while this is low."),
    )


def _sgl_retract(values: Values, start: ServerStart) -> Explanation:
    sentences = [
        counted(
            "{n} running request gave up its tokens because the pool was full, and went back to the queue.",
            "{n} running requests gave up their tokens because the pool was full, and went back to the queue.",
            int(values.get("retracted", 1)),
        )
    ]
    if "new_ratio" in values:
        sentences.append(
            _(
                "From now on, {new} of each request's maximum output is counted when one is admitted; it was {old}."
            ).format(new=values["new_ratio"], old=values["old_ratio"])
        )
    return Explanation(
        _("Retraction"),
        tuple(sentences),
        (SGL_CAUTION, SGL_RUNNING, SGL_FRACTION),
        _("Once in a while is normal. Nothing is lost: what is still cached is hit again, the rest is recomputed."),
    )


# -- /metrics --

_METRIC_TEXTS: Mapping[str, str] = {
    "running": N_("Requests running now."),
    "waiting": N_("Requests waiting for memory or for a place in a step."),
    "usage": N_("The share of the pool that requests hold, from 0 to 1."),
    "cpu_usage": N_("The share of the blocks in CPU memory that is in use, from 0 to 1."),
    "window_usage": N_("The share of the pool for sliding windows that requests hold, from 0 to 1."),
    "queries": N_("Prompt tokens looked up in the prefix cache since the start."),
    "hits": N_("Prompt tokens found in the cache since the start. Divided by those looked up, it gives the hit rate."),
    "hit_rate": N_("The share of prompt tokens found in the cache, from 0 to 1."),
    "preemptions": N_("How often a running request had to give up its memory since the start."),
    "config": N_("How the pool was made; the value is always 1."),
    "prompt_tokens": N_(
        "Prompt tokens since the start. It says nothing about memory, but hits are counted against it."
    ),
    "pool": N_("Tokens that the pool can hold, over all requests."),
    "prefill_limit": N_("Prompt tokens that one batch may compute."),
    "running_limit": N_("Slots for running requests. Memory may allow fewer if they are long."),
    "max_model_len": N_("Tokens that one request may have, prompt and output together."),
    "held_tokens": N_("Tokens that requests hold in the pool now."),
    "available_tokens": N_("Tokens for which the pool has free room."),
    "evictable_tokens": N_("Cached tokens that no request holds: they are evicted when room is needed."),
}
_METRIC_SETTINGS: Mapping[str, tuple[Setting, ...]] = {
    "usage": (MORE_KV, FEWER_SEQS),
    "preemptions": (MORE_KV, FEWER_SEQS),
    "hits": (CACHING,),
    "pool": (SGL_FRACTION,),
    "running_limit": (SGL_RUNNING,),
    "waiting": (MORE_KV,),
}
_METRIC_MISREAD: Mapping[str, str] = {
    "usage": N_(
        "Although its name says perc, the value goes from 0 to 1. Ranks of one server print copies: do not add them up."
    ),
    "running_limit": N_("It is the size of a table, not how many fit."),
    "hit_rate": N_("An early version printed percent; since then it goes from 0 to 1."),
    "queries": N_("It counts tokens, not requests; a block that matches in part counts as a miss."),
}


def _metric(values: Values, start: ServerStart) -> Explanation:
    counts, value = str(values["counts"]), float(values["value"])
    sentences = [_(_METRIC_TEXTS[counts])]
    if counts in ("usage", "hit_rate", "window_usage", "cpu_usage"):
        sentences.append(f"{100 * value:.3g} %")
    elif counts == "config":
        sentences += _of_config(values)
    else:
        sentences.append(f"{value:,.0f}")
    if counts == "pool" and start.full_requests is not None and start.value("max_model_len"):
        sentences.append(_("That is {times} full-length requests.").format(times=f"{start.full_requests:.2f}"))
    misread = _METRIC_MISREAD.get(counts, "")
    return Explanation(_("Metric"), tuple(sentences), _METRIC_SETTINGS.get(counts, ()), _(misread) if misread else "")


def _of_config(values: Values) -> Iterator[str]:
    blocks, size = values.get("label_num_gpu_blocks"), values.get("label_block_size")
    if isinstance(blocks, int) and isinstance(size, int):
        yield _("The pool has {blocks} of {size}: {tokens}.").format(
            blocks=blocks_counted(blocks), size=tokens_counted(size), tokens=tokens_counted(blocks * size)
        )


# -- several lines together --

_NOT_MONOTONE = N_(
    "A longer max_model_len need not leave less: the profile run grows with it until prompts are computed in "
    "chunks, and then peak activation memory falls again. Another length may fit, even a longer one."
)
_COPIES = N_("Each worker of a tensor-parallel server prints its own copy of this figure: do not add them up.")


def _of_starts(starts: tuple[ServerStart, ...]) -> Iterator[str]:
    if len(starts) < 2:
        return
    yield counted(
        "The log holds {n} start. The picture shows the last one.",
        "The log holds {n} starts. The picture shows the last one.",
        len(starts),
    )
    sizes = [(start.value("max_model_len"), start.kv_gib) for start in starts]
    if all(longest and kv for longest, kv in sizes) and len({longest for longest, _kv in sizes}) > 1:
        rows = ", ".join(f"{tokens_counted(int(longest or 0))}: {_gib(kv or 0)}" for longest, kv in sizes)
        yield _("Memory for the KV cache by max_model_len: {rows}. {why}").format(rows=rows, why=_(_NOT_MONOTONE))


def _of_last(start: ServerStart) -> Iterator[str]:
    if start.num_printed > 1:
        yield _("The size was printed {n} times, once by each worker; it counts once.").format(n=start.num_printed)
    if start.is_hybrid and start.value("concurrency") is not None and start.usable_tokens is not None:
        yield _(
            "This model has layers of several kinds. Go by the concurrency: {times} full-length requests, "
            "about {tokens}."
        ).format(times=f"{start.values['concurrency']:.2f}", tokens=tokens_counted(_rounded(start.usable_tokens)))
    if start.cached_tokens:
        yield _("Going by its prefill lines, {cached} of {tokens} were cache hits: {rate}.").format(
            cached=f"{start.cached_tokens:,}",
            tokens=tokens_counted(start.new_tokens + start.cached_tokens),
            rate=f"{100 * start.cached_tokens / (start.new_tokens + start.cached_tokens):.2f} %",
        )


def _per_token(start: ServerStart) -> Iterator[str]:
    kib = start.kib_per_token
    if kib is not None:
        yield _("One token takes about {kib} KiB on each GPU.").format(kib=f"{kib:.3g}")


def _rounded(number: int) -> int:
    """Four figures: a concurrency is printed with two decimals."""
    return round(number, 4 - len(str(number)))


def _percent(value: Value) -> str:
    return f"{value} %"


def _gib(value: Value) -> str:
    return f"{float(value):.4g} GiB" if float(value) >= 1 else f"{float(value):.2f} GiB"


Explainer = Callable[[Values, ServerStart], Explanation]
_EXPLAIN: Mapping[str, Explainer] = {
    "weights": _weights, "max_model_len": _max_model_len, "chunked_prefill": _chunked_prefill, "profile": _profile,
    "budget": _budget, "parts": _parts, "available": _available, "startup_summary": _startup_summary,
    "kv_suggestion": _kv_suggestion, "graphs": _graphs, "graph_pool": _graph_pool, "graph_estimate": _graph_estimate,
    "blocks": _blocks, "override": _override, "kv_size": _kv_size, "concurrency": _concurrency,
    "attention_block": _attention_block, "mamba_padding": _mamba_padding, "padding_layers": _padding_layers,
    "no_hybrid": _no_hybrid, "too_long_tokens": _too_long_tokens, "too_long_memory": _too_long_memory,
    "no_memory": _no_memory, "out_of_memory": _out_of_memory, "stats": _stats, "hit_rates": _hit_rates,
    "preempted": _preempted, "sgl_weights": _sgl_weights, "sgl_weights_begin": _sgl_weights, "sgl_pool": _sgl_pool,
    "sgl_windows": _sgl_windows, "sgl_pool_end": _sgl_pool_end, "sgl_graphs": _sgl_graphs, "sgl_limits": _sgl_limits,
    "sgl_prefill": _sgl_prefill, "sgl_decode": _sgl_decode, "sgl_retract": _sgl_retract, "metric": _metric,
}  # fmt: skip
