"""The requests with their streamed text, as an HTML list."""

from __future__ import annotations

from engine.state import RequestState
from views.engine_session import Moment
from views.html_parts import escaped, owner_badge, owner_style
from views.labels import OwnerLabels, labels_of

STATUS = {
    "waiting": "waiting",
    "running": "running",
    "preempted": "preempted, to be computed again",
    "swapped": "swapped out",
    "finished": "finished",
    "refused": "refused",
}
REASONS = {"error": "the model failed on it, and the others go on; the server's log has the details"}
"""Reasons that need more than the engine's own word."""


def request_list(moment: Moment) -> str:
    """Newest request first, a line for each of its sequences."""
    labels = labels_of(moment.state)
    items = [_request(moment, request, labels) for request in reversed(moment.state.requests.values())]
    return f'<ul class="pv-requests">{"".join(items)}</ul>'


def _request(moment: Moment, request: RequestState, labels: OwnerLabels) -> str:
    status = STATUS[request.status] + (f": {REASONS.get(request.reason, request.reason)}" if request.reason else "")
    prompt = moment.prompts.get(request.request_id, "")
    lines = "".join(_line(seq_id, request, prompt, moment.texts.get(seq_id, ""), labels) for seq_id in request.seq_ids)
    return (
        f'<li data-request="{escaped(request.request_id)}" data-status="{request.status}"><div class="head">'
        f"<strong>Request {escaped(request.request_id)}</strong><span>{escaped(status)}</span></div>{lines}</li>"
    )


def _line(seq_id: str, request: RequestState, prompt: str, reply: str, labels: OwnerLabels) -> str:
    label = labels.of(seq_id, request.request_id)
    return (
        f'<div class="pv-line" style="{owner_style(label)}">{owner_badge(label)}<div class="pv-text">'
        f'<span class="prompt" data-prompt="{escaped(seq_id)}">{escaped(prompt)}</span>'
        f'<span class="reply" data-text="{escaped(seq_id)}">{escaped(reply)}</span></div></div>'
    )
