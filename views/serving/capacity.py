"""The page that says what fits: its controls, the picture of one GPU and of the requests at once, and the formula."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from engine.capacity.model_shape import ConfigFileError, LayerKind, ModelShape, parse_config, read_shape
from engine.capacity.plan import FirstLimit, GpuMemory, Limit, Pool, first_limit, gpu_memory, pool_of
from engine.i18n import N_, _, blocks_counted, counted, tokens_counted
from engine.model.kv_cache_size import BYTES_PER_GB, WELL_KNOWN, size_in_words
from views.elements.memory_bar import BarPart, bar
from views.html_parts import figures, notice, small
from views.serving.pasted import pasted_text, pick_into
from views.url_state import draw_corrections, get_url_value, url_value_key
from views.url_values import ChoiceRule, NumberRule, TextRule

KEY = "capacity"
OWN = N_("your own config.json")
SHAPES = {facts.name: ModelShape.of(facts) for facts in WELL_KNOWN}
PRECISIONS: Mapping[str, float] = {N_("16 bits"): 2.0, N_("8 bits"): 1.0, N_("32 bits"): 4.0}
MODEL = ChoiceRule("model", N_("Model"), ("Llama 3.1 8B", *(name for name in SHAPES if name != "Llama 3.1 8B"), OWN))
PRECISION = ChoiceRule("precision", N_("Precision of the cache"), tuple(PRECISIONS))
GPUS = ChoiceRule("gpus", N_("GPUs (tensor parallel)"), ("1", "2", "4", "8", "16"))
CARD = NumberRule("card", N_("Memory of one GPU, in GB"), 1, 1024, 80)
SHARE = NumberRule("share", N_("gpu_memory_utilization, in percent"), 1, 100, 90)
OTHER = NumberRule("other", N_("Activations and other, in GB"), 0, 200, 3)
WEIGHTS = NumberRule("weights", N_("Weights on one GPU, in GB (0: estimated)"), 0, 1024, 0)
LONGEST = NumberRule("longest", N_("max_model_len"), 1, 10_000_000, 8192)
USERS = NumberRule("users", N_("Concurrent users"), 1, 100_000, 100)
EACH = NumberRule("each", N_("Tokens in each user's request"), 1, 10_000_000, 2000)
SEQS = NumberRule("seqs", N_("max_num_seqs"), 1, 100_000, 256)
CONFIG = TextRule("config_json", N_("config.json"), 200_000)
EXAMPLE = """{
  "architectures": ["Qwen3ForCausalLM"],
  "hidden_size": 5120, "num_hidden_layers": 40,
  "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
  "intermediate_size": 17408, "vocab_size": 151936,
  "max_position_embeddings": 40960, "torch_dtype": "bfloat16"
}"""
KIND_NAMES: Mapping[LayerKind, str] = {
    "full": N_("with full attention"),
    "sliding": N_("with a sliding window"),
    "latent": N_("with latent attention"),
    "linear": N_("with linear attention"),
}
LIMITS: Mapping[Limit, str] = {
    "weights": N_(
        "Nothing is left for the cache: weights and activations need {missing} more than the server may use."
    ),
    "one_request": N_(
        "Not even one request of max_model_len fits, so the server refuses to start. Up to {longest} would fit."
    ),
    "max_num_seqs": N_("max_num_seqs is reached first: {users} run and the others wait, although memory is left."),
    "blocks": N_("Blocks run out first: {users} fit. The next one waits, or a running one is preempted."),
    "nothing": N_("All of them run at once; there is room for {users}."),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the controls ask for, and what comes of it."""

    shape: ModelShape
    memory: GpuMemory
    pool: Pool
    limit: FirstLimit
    users: int
    each: int
    gpus: int
    element_bytes: float


def draw_controls() -> Plan | None:
    """The controls; None, and a sentence that says why, while they describe nothing."""
    shape = _draw_model()
    with st.container(key=f"knobs_{KEY}"):
        precision = _choose(PRECISION)
        gpus = int(_choose(GPUS))
        card = _ask(CARD)
        share = _ask(SHARE)
        weights = _ask(WEIGHTS)
        other = _ask(OTHER)
        longest = _ask(LONGEST)
        users = _ask(USERS)
        each = _ask(replace(EACH, high=longest, default=min(EACH.default, longest)))
        seqs = _ask(SEQS)
    draw_corrections(KEY)
    if shape is None:
        return None
    element_bytes = PRECISIONS[precision]
    weight_bytes = weights * gpus * BYTES_PER_GB or shape.weight_bytes
    memory = gpu_memory(card, share / 100, weight_bytes, other * BYTES_PER_GB, gpus)
    pool = pool_of(
        shape,
        kv_bytes=memory.kv,
        max_model_len=longest,
        tensor_parallel=gpus,
        element_bytes=element_bytes,
        state_blocks=2,
    )
    return Plan(shape, memory, pool, first_limit(pool, users, each, seqs), users, each, gpus, element_bytes)


def draw_picture(plan: Plan) -> None:
    """What fits in figures, one GPU's memory as a bar, and the requests at once, contiguous and paged."""
    pool = plan.pool
    contiguous, paged = pool.contiguous_requests, pool.paged_requests(plan.each)
    st.html(
        figures(
            [
                ("tokens", _("Tokens that fit"), f"{pool.num_tokens:,}"),
                ("blocks", _("Blocks of {n}").format(n=pool.groups.block_size), f"{pool.num_blocks:,}"),
                ("full_requests", _("Full-length requests"), f"{math.floor(100 * pool.concurrency) / 100:.2f}"),
            ]
        )
    )
    st.html(bar(_("Memory of one GPU"), _memory(plan.memory)))
    st.html(
        bar(
            _("Concurrent requests, each with room reserved for max_model_len (contiguous)"),
            _requests(contiguous, plan.users),
        )
    )
    st.html(bar(_("Concurrent requests, each with the blocks it needs (paged)"), _requests(paged, plan.users)))
    st.html(notice(_limit(plan), "note" if plan.limit.kind == "nothing" else "problem"))
    if plan.gpus > plan.shape.num_kv_heads and "latent" not in plan.shape.layers:
        st.html(small(_copies(plan)))


def draw_formula(plan: Plan) -> None:
    """The sums behind the picture, with these numbers."""
    pool, shape, groups = plan.pool, plan.shape, plan.pool.groups
    st.header(_("The formula"))
    lines = [_layers_line(plan, kind) for kind in shape.layers]
    lines.append(
        _("A block of {tokens} holds {n}: {size}.").format(
            tokens=tokens_counted(groups.block_size),
            n=counted("{n} layer", "{n} layers", groups.layers_per_group),
            size=size_in_words(groups.block_bytes),
        )
    )
    lines.append(
        _("{kv} for the cache ÷ {size} = {blocks} on each GPU.").format(
            kv=size_in_words(plan.memory.kv),
            size=size_in_words(groups.block_bytes),
            blocks=blocks_counted(pool.num_blocks),
        )
    )
    lines.append(
        _("A request of {longest} takes {full}, one of {each} takes {own}.").format(
            longest=tokens_counted(pool.max_model_len),
            full=blocks_counted(groups.blocks_for(pool.max_model_len)),
            each=tokens_counted(plan.each),
            own=blocks_counted(groups.blocks_for(plan.each)),
        )
    )
    if groups.num_groups > 1:
        lines.append(
            _("Layers of several kinds form {n} that share the pool; each group takes its own blocks.").format(
                n=counted("{n} group", "{n} groups", groups.num_groups)
            )
        )
    lines.append(
        _(
            "Weights are estimated from the shape: {weights} for {n} parameters. A server's log prints the real size."
        ).format(weights=size_in_words(shape.weight_bytes), n=f"{shape.num_parameters:,}")
    )
    for line in lines:
        st.text(line)


def _draw_model() -> ModelShape | None:
    chosen = _choose(MODEL)
    if chosen != OWN:
        return SHAPES[chosen]
    text = pasted_text(CONFIG, _("config.json of the model"), EXAMPLE, height=150)
    pick_into(CONFIG, _("Or open the file"), ".json")
    try:
        return read_shape(parse_config(text))
    except ConfigFileError as error:
        st.html(notice(str(error), "problem"))
        return None


def _choose(rule: ChoiceRule) -> str:
    value = get_url_value(KEY, rule, rule.options[0])
    st.selectbox(_(rule.name), list(rule.options), format_func=_, key=url_value_key(KEY, rule.key))
    return value


def _ask(rule: NumberRule) -> int:
    value = get_url_value(KEY, rule, int(rule.default))
    st.number_input(_(rule.name), int(rule.low), int(rule.high), key=url_value_key(KEY, rule.key))
    return value


def _memory(memory: GpuMemory) -> list[BarPart]:
    rows = (
        ("weights", _("Weights"), memory.weights),
        ("activation", _("Activations and other"), memory.other),
        ("kv", _("KV cache"), memory.kv),
        ("outside", _("Outside this server's share"), memory.total - memory.usable),
    )
    return [BarPart(kind, name, size_in_words(size), float(size)) for kind, name, size in rows if size > 0]


def _requests(count: int, users: int) -> list[BarPart]:
    running, waiting = min(count, users), max(users - count, 0)
    parts = [BarPart("kv", _("run"), f"{running:,}", float(running))] if running else []
    if waiting:
        parts.append(BarPart("weights", _("wait"), f"{waiting:,}", float(waiting)))
    elif count > users:
        parts.append(BarPart("free", _("more would fit"), f"{count - users:,}", float(count - users)))
    return parts


def _limit(plan: Plan) -> str:
    return _(LIMITS[plan.limit.kind]).format(
        missing=size_in_words(plan.memory.missing),
        longest=tokens_counted(plan.pool.longest_request),
        users=counted("{n} request", "{n} requests", plan.limit.users),
    )


def _copies(plan: Plan) -> str:
    return _(
        "{gpus} share {heads}, so each GPU holds a full copy of one head: more GPUs do not mean more tokens on each."
    ).format(
        gpus=counted("{n} GPU", "{n} GPUs", plan.gpus),
        heads=counted("{n} KV head", "{n} KV heads", plan.shape.num_kv_heads),
    )


def _layers_line(plan: Plan, kind: LayerKind) -> str:
    shape, count = plan.shape, plan.shape.layers[kind]
    name = f"{counted('{n} layer', '{n} layers', count)} {_(KIND_NAMES[kind])}"
    if kind == "linear" and shape.linear is not None:
        return _("{name}: a state of {size} per layer and request, whatever its length.").format(
            name=name, size=size_in_words(shape.linear.state_bytes(plan.gpus))
        )
    each = size_in_words(shape.token_bytes(kind, plan.element_bytes, plan.gpus))
    if kind == "latent":
        return _("{name}: {width} numbers × {bytes} bytes = {each} per token and layer, on every GPU.").format(
            name=name, width=shape.latent_width, bytes=f"{plan.element_bytes:g}", each=each
        )
    return _(
        "{name}: 2 × {heads} KV heads × {head_dim} × {bytes} bytes = {each} per token and layer, on each GPU."
    ).format(
        name=name,
        heads=shape.kv_heads_on_rank(plan.gpus),
        head_dim=shape.head_dim,
        bytes=f"{plan.element_bytes:g}",
        each=each,
    )
