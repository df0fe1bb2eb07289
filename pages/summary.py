"""The course in short, details, the glossary, the sources."""

from __future__ import annotations

from dataclasses import dataclass

from engine.said import said
from views import course
from views.course import SUMMARY
from views.glossary import glossary_list
from views.lesson import PAPER, PAPER_ADDRESS
from views.short_version import short_version
from views.worded import draw_list, st


@dataclass(frozen=True)
class Detail:
    title: str
    sentences: tuple[str, ...]


DETAILS = (
    Detail(
        "Why room goes unused",
        (
            "The length of a reply is known only when it ends.",
            "A reservation is made when it begins. So it is made for the longest reply there may be.",
            "What is not written is **internal fragmentation**: held and never used.",
            "What will be written later is held as well, and for most of the request's life it is empty.",
            "Runs that end leave gaps. When no gap is long enough, free memory is out of reach: **external "
            "fragmentation**.",
        ),
    ),
    Detail(
        "How blocks are given out",
        (
            "The pool is cut into blocks of `block_size` slots, once, at the start.",
            "A request takes a block when a token needs a slot and its last block is full.",
            "When the request ends, its blocks go back to the queue of free blocks.",
            "At most one block of a sequence is partly filled: the last.",
            "A token that was just chosen is **known**. Its keys and values are **written** in the next step.",
        ),
    ),
    Detail(
        "How attention reads them",
        (
            "The keys and values of position `p` lie in slot `block_table[p // block_size] * block_size + p % "
            "block_size`.",
            "The kernel goes along the table, block by block, in the order of the text.",
            "It sums up the same products as without pages. The result does not depend on where blocks lie.",
        ),
    ),
    Detail(
        "How blocks are shared",
        (
            "A block counts the tables that name it: `ref_cnt`. It is free when none does.",
            "Reading needs no copy. Who must write into a block that others hold copies it first: **copy-on-write**.",
            "The paper shares at a **fork**, half-filled blocks too. vLLM finds full blocks by their "
            "**content**, and copies never.",
            "A free block keeps its content until it is taken, so an equal prompt may find it again.",
        ),
    ),
    Detail(
        "What happens when blocks run out",
        (
            "A waiting request waits. Nothing is reserved for it.",
            "A running request that needs a block may make a later one give up all of its blocks: **preemption**.",
            "That one comes back by computing its keys and values again, or by fetching them from CPU memory.",
        ),
    ),
    Detail(
        "What paging does not do",
        (
            "It does not compress keys and values, and it does not leave any out.",
            "It does not make attention approximate.",
            "It does not make the kernel faster: look-ups cost a little. The gain is room for more requests at once.",
            "How much that brings depends on the work, the model and the machine. Measure it on yours.",
        ),
    ),
)

SOURCES = (
    said(
        "{paper}. [arxiv.org/abs/2309.06180]({address}). Fig. 2 and section 3.1: where memory goes. Sections 4.1 to "
        "4.3: blocks, tables, the kernel. Section 4.4: sharing. Section 4.5: preemption. Section 7: what it costs.",
        paper=PAPER,
        address=PAPER_ADDRESS,
    ),
    "Yu et al. 2022, Orca: A Distributed Serving System for Transformer-Based Generative Models. "
    "[usenix.org](https://www.usenix.org/conference/osdi22/presentation/yu). Scheduling step by step, which "
    "the paper builds on and compares with.",
    "The documentation of vLLM, whose names this course uses. "
    "[docs.vllm.ai](https://docs.vllm.ai/en/latest/design/prefix_caching.html). Prefix caching by the hash of a block.",
    "Zheng et al. 2024, SGLang: Efficient Execution of Structured Language Model Programs. "
    "[arxiv.org/abs/2312.07104](https://arxiv.org/abs/2312.07104). The same sharing with a radix tree.",
    "Prabhu et al. 2024, vAttention. [arxiv.org/abs/2405.04437](https://arxiv.org/abs/2405.04437). "
    "The other opinion: leave the layout contiguous and let the GPU's own page tables do it.",
)


def draw_short_version() -> None:
    for number, line in enumerate(short_version(), 1):
        with st.container(border=True, key=f"short_{number}"):
            course.draw_link(line.page, "{number}. **{title}**", {"number": number})
            st.text(line.text)


st.title(SUMMARY.title)
st.markdown("Seven lessons in seven boxes. Every number is counted from the lesson's own scene; the title leads there.")
draw_short_version()

st.header("Details")
for detail in DETAILS:
    with st.expander(detail.title):
        draw_list(detail.sentences)

st.header("Glossary")
st.markdown("The names are vLLM's. *Also* gives older names and those of other engines.")
st.html(glossary_list())

st.header("Sources")
draw_list(SOURCES)
course.draw_previous(SUMMARY)
course.draw_next(SUMMARY)
