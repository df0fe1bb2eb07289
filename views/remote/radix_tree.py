"""The prefix trees as lists that open and close, and the most shared beginnings as a table. Text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

from engine.i18n import N_, _, blocks_counted, counted, tokens_counted
from engine.remote.prompt import PromptResult
from engine.remote.radix_tree import RadixNode, RadixTree
from engine.trace.cache_events import BlockHash
from views.browser.assets import read_assets
from views.html_parts import escaped
from views.remote.vocabulary import Vocabulary

UNKNOWN_START = N_("its parent is not stored")
STORED_MARK, FOUND_MARK = N_("{n} stored by your prompt"), N_("{n} found by your prompt")
_TREE = st.components.v2.component(
    "radix_tree",
    html=read_assets("radix_tree/radix_tree.html"),
    css=read_assets("radix_tree/radix_tree.css"),
    js=read_assets("radix_tree/radix_tree.js"),
)


def draw_radix_tree(tree: RadixTree, vocabulary: Vocabulary, asked: PromptResult | None) -> None:
    """All trees; the way to the most shared prefix is open, and what the reader opens or closes stays so."""
    if tree.nodes:
        _TREE(key="radix_tree", data=radix_tree_data(tree, vocabulary, asked), height="content")


def radix_tree_data(tree: RadixTree, vocabulary: Vocabulary, asked: PromptResult | None) -> dict[str, Any]:
    """What the script draws: nodes depth first.

    id: the same for a node that stays. depth: nodes above it. open: whether it opens by itself. words, facts: a line
    each. marks: kind and text.
    """
    nodes = [
        {
            "id": str(node.blocks[0].block_hash),
            "depth": node.depth,
            "open": node.leads_to_shared,
            "words": vocabulary.beginning(node.token_ids),
            "facts": ", ".join(_facts(node)),
            "marks": _marks(node, asked),
        }
        for node in tree.nodes
    ]
    return {"label": _("Prefix tree"), "nodes": nodes}


def shared_html(nodes: Iterable[RadixNode], vocabulary: Vocabulary) -> str:
    """Beginnings by the number of different continuations."""
    rows = "".join(
        f"<tr><td data-continuations>{node.num_continuations}</td><td>{node.end}</td>"
        f'<td class="pv-words" dir="auto">{escaped(vocabulary.end(node.token_ids))}</td></tr>'
        for node in nodes
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in (_("branches"), _("tokens so far"), _("ends with")))
    caption = _("Prefixes with the most branches")
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}">'
        f"<table data-shared><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _facts(node: RadixNode) -> list[str]:
    facts = [blocks_counted(len(node.blocks)), tokens_counted(node.num_tokens)]
    if node.num_copies > len(node.blocks):
        facts.append(counted("{n} copy", "{n} copies", node.num_copies))
    if node.num_continuations > 1:
        facts.append(counted("{n} branch", "{n} branches", node.num_continuations))
    if node.has_unknown_start:
        facts.append(_(UNKNOWN_START))
    return facts


def _marks(node: RadixNode, asked: PromptResult | None) -> list[tuple[str, str]]:
    if asked is None:
        return []
    marks = (("stored", asked.stored, STORED_MARK), ("found", asked.found, FOUND_MARK))
    counts = [(kind, _num_in(node, hashes), text) for kind, hashes, text in marks]
    return [(kind, _(text).format(n=count)) for kind, count, text in counts if count]


def _num_in(node: RadixNode, hashes: frozenset[BlockHash]) -> int:
    return sum(block.block_hash in hashes for block in node.blocks)
