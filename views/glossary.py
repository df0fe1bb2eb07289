"""The words of the course, and what papers and other engines call the same thing."""

from __future__ import annotations

from dataclasses import dataclass

from views.html_parts import escaped
from views.words import filled, translated


@dataclass(frozen=True, slots=True)
class Term:
    """`name` as the course and vLLM V1 say it; `also`: older names and those of other engines."""

    name: str
    meaning: str
    also: str = ""


GLOSSARY = (
    Term("KV cache", "The keys and values of every token so far, kept so that no step computes them again.",
         "past key values, KV state"),
    Term("slot", "Room for one token's keys and values, in every layer.", "cache entry, token slot"),
    Term("block", "A fixed number of neighbouring slots. The unit in which memory is given out.",
         "page, KV page, physical block"),
    Term("block_size", "Slots in a block.", "page size, tokens per block"),
    Term("num_blocks", "Blocks in the pool.", "num_gpu_blocks, num_pages"),
    Term("logical block", "A block by its place in the text: the first, the second, the third.", "virtual page"),
    Term("block_table", "For each logical block of a sequence, the physical block that holds it. One row a sequence.",
         "page table, block map, paged_kv_indices"),
    Term("slot_mapping", "For each token about to be written, the slot that takes it.", "out_cache_loc"),
    Term("seq_lens", "Tokens of each sequence, the new ones included.", "context_lens"),
    Term("query_start_loc", "Where each sequence's new tokens begin when a batch is laid end to end.", "cu_seqlens_q"),
    Term("num_computed_tokens", "Tokens whose keys and values are written. The newest token is known but not written.",
         "n_past, cache_position"),
    Term("ref_cnt", "How many block tables name a block.", "reference count"),
    Term("free_block_queue", "The blocks nobody holds, in the order in which they will be taken.", "free list"),
    Term("block_hash", "A name made from a full block's tokens and all before it: how equal beginnings are found.",
         "prefix hash; SGLang keeps a radix tree instead"),
    Term("prefix caching", "Finding full blocks again by their content, also after their request has ended.",
         "automatic prefix caching, context caching"),
    Term("fork", "A sequence goes on in two ways. Both begin with the same blocks.", ""),
    Term("copy-on-write", "Sharing a block until somebody must write into it, and only then making a private copy.",
         "CoW"),
    Term("preemption", "A running request gives its blocks back because others need them, and waits.",
         "eviction, retraction"),
    Term("recompute, swap", "Two ways back after preemption: compute the keys and values again, or fetch them from "
         "CPU memory.", ""),
    Term("prefill, decode", "Reading the prompt, many tokens in a step; then writing, one token a step.",
         "prompt phase and generation phase, context and generation"),
    Term("chunked prefill", "A long prompt read in pieces, so that others can go on writing between them.",
         "SplitFuse"),
    Term("continuous batching", "Requests join and leave the running batch at every step.",
         "in-flight batching, iteration-level scheduling"),
    Term("num_kv_heads, head_dim", "How many heads have keys and values of their own, and how many numbers each has.",
         "n_head_kv; head size"),
    Term("reservation", "One run of neighbouring slots set aside for a request from the start.",
         "pre-allocation, static cache"),
    Term("internal fragmentation", "Slots held by a request that it never uses.", ""),
    Term("external fragmentation", "Free slots that nobody can use, because they are not in one piece.",
         "gaps, holes"),
)  # fmt: skip


def glossary_list() -> str:
    """The terms as an HTML list: the word, what it means, what it is called elsewhere."""
    return f'<dl class="pv-glossary">{"".join(map(_entry, GLOSSARY))}</dl>'


def _entry(term: Term) -> str:
    also = filled("Also: {names}", {"names": translated(term.also)}) if term.also else ""
    small = f"<dd><small>{escaped(also)}</small></dd>" if also else ""
    return f"<div><dt>{escaped(translated(term.name))}</dt><dd>{escaped(translated(term.meaning))}</dd>{small}</div>"
