"""The words of the course, and what papers and other engines call the same thing."""

from __future__ import annotations

from dataclasses import dataclass

from engine.i18n import N_


@dataclass(frozen=True, slots=True)
class Term:
    """`name` as the course and vLLM V1 say it; `also`: older names and those of other engines."""

    name: str
    meaning: str
    also: str = ""


GLOSSARY = (
    Term(
        N_("query, key, value"),
        N_(
            "Three vectors of a token, in each attention layer. The newest token's query is compared with the keys of "
            "all tokens so far; the scores weight their values."
        ),
        N_("Q, K, V"),
    ),
    Term(
        N_("KV cache"),
        N_("The keys and values of every token so far, kept so that no step computes them again."),
        N_("past key values, KV state"),
    ),
    Term(
        N_("prefill, decode"),
        N_("Prefill computes the prompt, many tokens in one step. Decode generates the reply, one token per step."),
        N_("prompt phase and generation phase, context and generation"),
    ),
    Term(
        N_("slot"),
        N_("Room for the keys and values of one token, in every layer."),
        N_("cache entry, token slot"),
    ),
    Term(N_("contiguous"), N_("In one piece: each slot is next to the one before it.")),
    Term(
        N_("reservation"),
        N_("A contiguous region of slots that a request holds from its start to its end."),
        N_("pre-allocation, static cache"),
    ),
    Term(N_("internal fragmentation"), N_("Slots that a request holds and never uses.")),
    Term(
        N_("external fragmentation"),
        N_("Free slots that no request can use, because they are not contiguous."),
        N_("gaps, holes"),
    ),
    Term(
        N_("block"),
        N_("A fixed number of contiguous slots: the unit in which memory is allocated."),
        N_("page, KV page, physical block"),
    ),
    Term(N_("block_size"), N_("Number of slots in a block."), N_("page size, tokens per block")),
    Term(N_("num_blocks"), N_("Number of blocks in the pool."), N_("num_gpu_blocks, num_pages")),
    Term(
        N_("logical block"),
        N_("A block by its position in the text: the first, the second, the third."),
        N_("virtual page"),
    ),
    Term(
        N_("block_table"),
        N_("For each logical block of a sequence, the physical block that stores it. One row per sequence."),
        N_("page table, block map, paged_kv_indices"),
    ),
    Term(N_("slot_mapping"), N_("For each token about to be written, the slot it goes to."), N_("out_cache_loc")),
    Term(N_("seq_lens"), N_("Number of tokens of each sequence, including the new ones."), N_("context_lens")),
    Term(
        N_("query_start_loc"),
        N_("Where each sequence's new tokens begin when the tokens of a batch are put in one row."),
        N_("cu_seqlens_q"),
    ),
    Term(
        N_("num_computed_tokens"),
        N_("Tokens whose keys and values are in the cache. The newest token has been sampled, but is not written yet."),
        N_("n_past, cache_position"),
    ),
    Term(N_("ref_cnt"), N_("How many block tables point to a block."), N_("reference count")),
    Term(N_("private block"), N_("A block that only one block table points to.")),
    Term(
        N_("free_block_queue"),
        N_("The blocks that no block table points to, in the order in which they will be allocated."),
        N_("free list"),
    ),
    Term(N_("fork"), N_("One sequence becomes two. Both start with the same blocks.")),
    Term(
        N_("copy-on-write"),
        N_("Sharing a block until a sequence must write into it, and only then making a private copy."),
        N_("CoW"),
    ),
    Term(
        N_("prefix caching"),
        N_("Full blocks are found again by their hash, also after their request has ended."),
        N_("automatic prefix caching, context caching"),
    ),
    Term(
        N_("block_hash"),
        N_("A hash of a full block's tokens and of the hash of the block before it."),
        N_("prefix hash"),
    ),
    Term(
        N_("hash chain"),
        N_("Each block's hash includes the one before it, so equal hashes mean equal prefixes up to that block."),
    ),
    Term(
        N_("radix tree"),
        N_("How SGLang finds prefixes: prompts that begin with the same tokens share a path from the root."),
        N_("RadixAttention, prefix tree"),
    ),
    Term(
        N_("cached block"),
        N_("A free block whose keys and values are still there, so that a prompt with the same prefix can use it."),
    ),
    Term(
        N_("eviction"),
        N_("A cached block is allocated for other tokens and can no longer be found."),
        N_("cache replacement"),
    ),
    Term(
        N_("prefix cache hit"),
        N_("A block of a new prompt is found in the prefix cache, so its tokens are not computed again."),
    ),
    Term(
        N_("prefix cache hit rate"),
        N_("Tokens found in the prefix cache, as a percentage of the tokens looked up."),
        N_("cache hit ratio"),
    ),
    Term(
        N_("preemption"),
        N_("The blocks of a running request are freed because other requests need them, and it waits."),
        N_("retraction"),
    ),
    Term(
        N_("recompute, swap"),
        N_("Two ways to resume after preemption: compute the keys and values again, or copy them back from the CPU."),
    ),
    Term(
        N_("chunked prefill"),
        N_("A long prompt is computed in pieces, so that other requests can decode in between."),
        N_("SplitFuse"),
    ),
    Term(
        N_("continuous batching"),
        N_("Requests join and leave the running batch at every step."),
        N_("in-flight batching, iteration-level scheduling"),
    ),
    Term(
        N_("time to first token"),
        N_("Time from the arrival of a request to the first token of its reply. A prefix cache hit makes it shorter."),
        N_("TTFT"),
    ),
    Term(N_("throughput"), N_("Tokens per second, of all requests together.")),
    Term(
        N_("max_model_len"),
        N_("The most tokens that prompt and reply of one request may have together."),
        N_("context length, maximum sequence length"),
    ),
    Term(
        N_("gpu_memory_utilization"),
        N_("The share of GPU memory that vLLM may use. What weights and computing leave of it becomes the KV cache."),
        N_("mem_fraction_static in SGLang"),
    ),
    Term(
        N_("num_kv_heads, head_dim"),
        N_(
            "How many heads have keys and values of their own, and the head dimension: the numbers in one key or value."
        ),
        N_("n_head_kv; head size"),
    ),
)
