"""The requests with their streamed text, as an HTML list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from engine.i18n import N_, _
from engine.trace.state import RequestState
from views.html_parts import escaped, owner_badge, owner_style
from views.memory_map.labels import OwnerLabels, labels_of
from views.server.engine_session import Moment

STATUS = {
    "waiting": N_("waiting"),
    "running": N_("running"),
    "preempted": N_("preempted, to be recomputed"),
    "swapped": N_("swapped out"),
    "finished": N_("finished"),
    "refused": N_("refused"),
}
NO_MARKS: Mapping[str, str] = MappingProxyType({})
DEAD = N_(" (this beam was pruned)")
OTHERS_GO_ON = N_(" The others go on; the server's log has the details.")


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
        _line(seq_id, request, prompt, moment.texts.get(seq_id, ""), labels, _(DEAD) if seq_id in dead else "")
        for seq_id in sorted(request.seq_ids, key=dead.__contains__)
    )
    name = _("Request {request_id}").format(request_id=request.request_id)
    marked = f"<em>{escaped(mark)}</em>" if mark else ""
    return (
        f'<li data-request="{escaped(request.request_id)}" data-status="{request.status}"><div class="head">'
        f"<strong>{escaped(name)}</strong>{marked}<span>{escaped(status)}</span></div>"
        f"{lines}</li>"
    )


def _status(moment: Moment, request: RequestState) -> str:
    """Where the request is, and the engine's own word or sentence for why."""
    why = f": {request.reason}" if request.reason else ""
    has_failed = any(moment.state.sequences[seq_id].finish_reason == "error" for seq_id in request.seq_ids)
    return _(STATUS[request.status]) + why + (_(OTHERS_GO_ON) if has_failed else "")


def _line(seq_id: str, request: RequestState, prompt: str, reply: str, labels: OwnerLabels, mark: str) -> str:
    label = labels.of(seq_id, request.request_id)
    asked, answered = _heard(_("Prompt:")), _heard(_("Reply:"))
    return (
        f'<div class="pv-line" style="{owner_style(label)}">{owner_badge(label)}<div class="pv-text" dir="auto">'
        f'{asked}<span class="prompt" data-prompt="{escaped(seq_id)}">{escaped(prompt)}</span>'
        f'{answered}<span class="reply" data-text="{escaped(seq_id)}">{escaped(reply)}</span>{escaped(mark)}'
        "</div></div>"
    )


def _heard(words: str) -> str:
    """For a screen reader alone: colours tell the eye where the reply begins. It has no say in the line's direction."""
    return f'<bdi class="pv-heard">{escaped(words)} </bdi>'
