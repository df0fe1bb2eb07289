"""Where the idea is from: the page table of an operating system, beside the block table of a request.

Kwon et al. 2023, section 4.1: blocks are like pages, tokens like bytes, and requests like processes.
"""

from __future__ import annotations

from engine.i18n import N_

COUNTERPARTS = (
    (N_("process"), N_("request")),
    (N_("byte"), N_("token's keys and values")),
    (N_("page, always the same size"), N_("block, always the same size")),
    (N_("virtual page number"), N_("logical block: its place in the text")),
    (N_("page frame in physical memory"), N_("physical block in GPU memory")),
    (N_("page table of the process"), N_("block table of the request")),
    (N_("a frame is allocated at the first access"), N_("a block is allocated when a token needs it")),
    (N_("after fork, pages are shared and copied on write"), N_("samples share blocks and copy on write")),
)
"""The same thing in an operating system, and in PagedAttention."""
