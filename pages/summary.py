"""The last page: what a reader can now explain and what they did, to print; details, the glossary, the sources."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from course.glossary import GLOSSARY, Term
from course.pages import LESSONS, SUMMARY
from engine.i18n import N_, _
from views import navigation
from views.html_parts import draw_list, escaped
from views.lesson_page import PAPER, PAPER_ADDRESS
from views.progress import draw_print_button, forget_progress, milestones_of


@dataclass(frozen=True)
class Detail:
    title: str
    sentences: tuple[str, ...]


DETAILS = (
    Detail(
        N_("Why reserved memory stays unused"),
        (
            N_("The length of a reply is known only when it ends."),
            N_(
                "A reservation is made when the request starts. So it is made for the longest reply allowed: "
                "prompt and reply together may have `max_model_len` tokens."
            ),
            N_("Slots that are held and never used are **internal fragmentation**."),
            N_("Slots that will be written later are held too, and most of the time they are empty."),
            N_(
                "Requests that end leave gaps. When no gap is long enough, free memory cannot be used: "
                "**external fragmentation**."
            ),
        ),
    ),
    Detail(
        N_("How blocks are allocated"),
        (
            N_(
                "The pool is divided into blocks of `block_size` slots once, at the start. In vLLM it is the "
                "memory that weights and activations leave of `gpu_memory_utilization`."
            ),
            N_("A request gets a block when a token needs a slot and its last block is full."),
            N_("When the request ends, its blocks return to the free block queue."),
            N_("At most one block of a sequence is partly filled: the last."),
            N_("A token that was just sampled is **known**. Its keys and values are **written** in the next step."),
        ),
    ),
    Detail(
        N_("How attention reads them"),
        (
            N_(
                "The keys and values of position `p` are in slot `block_table[p // block_size] * block_size + "
                "p % block_size`."
            ),
            N_(
                "The newest token's **query** is compared with the key of every token so far; the scores "
                "weight the values. The kernel follows the block table, block by block, in the order of the "
                "text."
            ),
            N_("It computes the same sums as without paging. The result does not depend on where blocks are."),
        ),
    ),
    Detail(
        N_("How blocks are shared"),
        (
            N_("`ref_cnt` counts the block tables that point to a block. At 0, the block is free."),
            N_(
                "Reading needs no copy. Before a request writes into a shared block, it gets a private copy: "
                "**copy-on-write**."
            ),
            N_(
                "The paper shares at a **fork**, partly filled blocks too. vLLM finds full blocks in its "
                "**prefix cache** and never copies. Each block's hash includes the one before it (a **hash "
                "chain**), so it stands for the whole prefix. SGLang keeps prefixes in a **radix tree**."
            ),
            N_(
                "A free block stays **cached** until it is allocated for other tokens (**evicted**). Until "
                "then, a prompt with the same prefix finds it: a **prefix cache hit**, which shortens the "
                "**time to first token** (TTFT)."
            ),
        ),
    ),
    Detail(
        N_("What happens when blocks run out"),
        (
            N_("A new request waits. Nothing is reserved for it."),
            N_(
                "A running request that needs a block can cause **preemption**: first come, first served, so "
                "the newest request loses all of its blocks."
            ),
            N_(
                "It resumes by computing its keys and values again, as in vLLM today, or by copying "
                "them back from CPU memory (swapping), as the paper could too."
            ),
        ),
    ),
    Detail(
        N_("What paging does not do"),
        (
            N_("It does not compress keys and values, and it does not drop any."),
            N_("It does not make attention approximate."),
            N_(
                "It does not make the kernel faster: lookups cost a little. The gain is room for more requests at once."
            ),
            N_(
                "How much **throughput** (tokens per second, of all requests together) that brings depends on "
                "the workload, the model and the hardware. Measure it on yours."
            ),
        ),
    ),
)

SOURCES = (
    _(
        "{paper}. [arxiv.org/abs/2309.06180]({address}). Fig. 2 and section 3.1: where memory "
        "goes. Sections 4.1 to 4.3: blocks, tables, the kernel. Section 4.4: sharing. Section "
        "4.5: preemption. Section 7: what it costs."
    ).format(paper=PAPER, address=PAPER_ADDRESS),
    N_(
        "Yu et al. 2022, Orca: A Distributed Serving System for Transformer-Based Generative Models. "
        "[usenix.org](https://www.usenix.org/conference/osdi22/presentation/yu). Continuous batching, "
        "which the paper builds on and compares with."
    ),
    N_(
        "The documentation of vLLM, whose names this course uses. "
        "[docs.vllm.ai](https://docs.vllm.ai/en/latest/design/prefix_caching.html). Prefix caching by the "
        "hash of a block."
    ),
    N_(
        "Zheng et al. 2024, SGLang: Efficient Execution of Structured Language Model Programs. "
        "[arxiv.org/abs/2312.07104](https://arxiv.org/abs/2312.07104). Prefix sharing with a radix "
        "tree."
    ),
    N_(
        "Prabhu et al. 2024, vAttention. "
        "[arxiv.org/abs/2405.04437](https://arxiv.org/abs/2405.04437). An alternative: keep the "
        "layout contiguous and use the GPU's own page tables."
    ),
)


def glossary_list() -> str:
    """The terms as an HTML list: the word, what it means, what it is called elsewhere."""
    return f'<dl class="pv-glossary">{"".join(map(_entry, GLOSSARY))}</dl>'


def _entry(term: Term) -> str:
    also = _("Also: {names}").format(names=_(term.also)) if term.also else ""
    small = f"<dd><small>{escaped(also)}</small></dd>" if also else ""
    return f"<div><dt>{escaped(_(term.name))}</dt><dd>{escaped(_(term.meaning))}</dd>{small}</div>"


def draw_card() -> None:
    """A box for each lesson: what it lets a reader explain, in numbers of its own scene, and what they did there."""
    lines = [(lesson, lesson.summary()) for lesson in LESSONS if lesson.summary]
    for number, (lesson, line) in enumerate(lines, 1):
        with st.container(border=True, key=f"short_{number}"):
            facts = {"number": number, "explains": _(lesson.explains)}
            navigation.draw_link(lesson, "{number}. **{explains}**", facts)
            st.text(line)
            st.html(milestones_of(lesson))


def draw_details() -> None:
    st.header(_("Details"))
    for detail in DETAILS:
        with st.expander(_(detail.title)):
            draw_list([_(sentence) for sentence in detail.sentences])
    with st.expander(_("Glossary")):
        st.markdown(_("The names are vLLM's. *Also* gives older names and those of other engines."))
        st.html(glossary_list())
    st.header(_("Sources"))
    draw_list([_(source) for source in SOURCES])


st.title(_(SUMMARY.title))
with st.container(horizontal=True, vertical_alignment="center", key="summary_actions"):
    st.markdown(_("Every number is counted from the lesson's own scene. What you did is kept in this browser alone."))
    draw_print_button()
    st.button(_("Forget what I did"), key="forget_progress", on_click=forget_progress)
draw_card()
with st.container(key="summary_more"):
    draw_details()
    navigation.draw_previous(SUMMARY)
    navigation.draw_next(SUMMARY)
