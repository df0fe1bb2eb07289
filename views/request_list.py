"""The requests with their streamed text, as an HTML list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

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
NO_MARKS: Mapping[str, str] = MappingProxyType({})
DEAD = " (this beam died)"
OTHERS_GO_ON = " The others go on; the server's log has the details."


def request_list(moment: Moment, names: Iterable[str] | None = None, marks: Mapping[str, str] = NO_MARKS) -> str:
    """A line for each sequence of the requests `names` (default: all, newest first). `marks`: a word beside a name."""
    labels = labels_of(moment.state)
    requests = moment.state.requests
    items = [_request(moment, requests[name], labels, marks.get(name, "")) for name in names or reversed(requests)]
    return f'<ul class="pv-requests">{"".join(items)}</ul>'


def _request(moment: Moment, request: RequestState, labels: OwnerLabels, mark: str) -> str:
    status = _status(moment, request)
    prompt = moment.prompts.get(request.request_id, "")
    dead = {s for s in request.seq_ids if moment.state.sequences[s].finish_reason == "beam_pruned"}
    lines = "".join(
        _line(seq_id, request, prompt, moment.texts.get(seq_id, ""), labels, DEAD if seq_id in dead else "")
        for seq_id in sorted(request.seq_ids, key=dead.__contains__)
    )
    marked = f"<em>{escaped(mark)}</em>" if mark else ""
    return (
        f'<li data-request="{escaped(request.request_id)}" data-status="{request.status}"><div class="head">'
        f"<strong>Request {escaped(request.request_id)}</strong>{marked}<span>{escaped(status)}</span></div>"
        f"{lines}</li>"
    )


def _status(moment: Moment, request: RequestState) -> str:
    """Where the request is, and the engine's own word or sentence for why."""
    why = f": {request.reason}" if request.reason else ""
    has_failed = any(moment.state.sequences[seq_id].finish_reason == "error" for seq_id in request.seq_ids)
    return STATUS[request.status] + why + (OTHERS_GO_ON if has_failed else "")


def _line(seq_id: str, request: RequestState, prompt: str, reply: str, labels: OwnerLabels, mark: str) -> str:
    label = labels.of(seq_id, request.request_id)
    return (
        f'<div class="pv-line" style="{owner_style(label)}">{owner_badge(label)}<div class="pv-text">'
        f'<span class="prompt" data-prompt="{escaped(seq_id)}">{escaped(prompt)}</span>'
        f'<span class="reply" data-text="{escaped(seq_id)}">{escaped(reply)}</span>{escaped(mark)}</div></div>'
    )
