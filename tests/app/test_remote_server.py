"""The page over the recorded stream, without a browser: its figures are those of the plain JSON, at every moment."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape

import pytest
from streamlit.testing.v1 import AppTest

from engine import Engine, EngineConfig, SamplingParams
from engine.remote.addresses import events_address
from engine.remote.history import History
from engine.remote.server import ServerAddresses
from engine.trace import Trace
from engine.trace_source import SourceFacts, WholeTrace
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.app_server import ROOT, free_port
from tests.helpers.kv_stream import payload, removed, stored, wait_until
from views.file_picker import TakenFile
from views.remote_access import refusal
from views.remote_picture import NOTHING_YET
from views.remote_shown import RECORDED, Shown, open_file, open_recorded
from views.server import model_shelf
from views.trace_page import FROM_A_SERVER

PAGE = "pages/remote_server.py"
PLAIN = [json.loads(line) for line in (ROOT / "tests/data/vllm-0.32-kv-events.jsonl").read_text("utf-8").splitlines()]


def counted(num_messages: int) -> dict[str, str]:
    """The page's figures after so many messages, from the JSON alone."""
    copies: Counter[int] = Counter()
    totals = Counter()
    for message in PLAIN[:num_messages]:
        for event in message["events"]:
            totals[event["type"]] += len(event["block_hashes"])
            copies.update(dict.fromkeys(event["block_hashes"], 1 if event["type"] == "BlockStored" else -1))
    held = +copies
    return {
        "report.num_blocks": str(len(held)),
        "report.num_copies": str(held.total()),
        "report.num_stored": str(totals["BlockStored"]),
        "report.num_removed": str(totals["BlockRemoved"]),
        "report.pool_blocks": "24",
        "report.occupancy": f"{100 * held.total() / 24:.0f} %",
    }


def recorded(open_page: OpenPage) -> AppTest:
    return open_page(PAGE).button(key="open_recorded").click().run()


def map_payload(app: AppTest) -> dict:
    [data] = [data for e in app.get("bidi_component") if "payload" in (data := json.loads(e.proto.json))]
    return data["payload"]


def test_before_anything_is_opened_the_page_says_what_to_do(open_page: OpenPage) -> None:
    app = open_page(PAGE)
    assert sentences(app)[0].startswith("No server at hand? Open the recorded stream, or start one on this machine:")
    assert app.button(key="close_remote").disabled


def test_the_recorded_stream_is_labelled_and_its_figures_are_the_jsons(open_page: OpenPage) -> None:
    app = recorded(open_page)
    assert "<h2>Recorded from vLLM 0.32</h2>" in all_html(app)
    assert "Recorded: this happened earlier, and no server is asked." in sentences(app)
    for moment in (24, 1, 6, 11, 15, 23):
        app.slider(key="remote_moment").set_value(moment).run()
        expected = counted(moment)
        assert {key: figure(app, key) for key in expected} == expected, f"at moment {moment}"


def test_what_the_stream_does_not_tell_is_unknown(open_page: OpenPage) -> None:
    app = recorded(open_page)
    app.slider(key="remote_moment").set_value(5).run()
    assert figure(app, "report.stored_per_second") == "unknown"
    payload = map_payload(app)
    assert (payload["places"], payload["title"]) == ("unknown", "Stored blocks (physical place unknown)")
    assert not [frame for frame in payload["frames"] if frame.get("seqs") or frame.get("new_seqs")]


def test_the_map_holds_the_stored_blocks_in_order(open_page: OpenPage) -> None:
    app = recorded(open_page)
    app.slider(key="remote_moment").set_value(2).run()
    [frame] = map_payload(app)["frames"]
    ids = [token_id for token_id, _text in frame["new_tokens"]]
    drawn = [[ids[token] for _offset, _seq, _position, token in block["slots"]] for block in frame["blocks"]]
    assert drawn == [message["events"][0]["token_ids"] for message in PLAIN[:2]]


def test_the_forest_shows_ids_until_a_vocabulary_is_chosen(open_page: OpenPage) -> None:
    app = recorded(open_page)
    app.slider(key="remote_moment").set_value(1).run()
    [run] = re.findall(r'<span class="pv-words">(.*?)</span>', all_html(app))
    assert run == " ".join(map(str, PLAIN[0]["events"][0]["token_ids"][:24])) + " …"


def test_shared_beginnings_are_listed_with_their_text(open_page: OpenPage) -> None:
    history = History()
    history.add_message(0, payload(stored([1, 2], None, list(b"one <b>story"), 6)))
    history.add_message(1, payload(stored([3], 1, list(b" book "), 6), stored([4], 3, list(b"closed"), 6)))
    app = open_page(PAGE)
    wait_until(lambda: model_shelf().ask("tiny-random").model is not None, "loading the vocabulary")
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test", model="tiny-random")))
    app.run()
    rows = re.findall(r"<tr><td data-continuations>(\d+)</td><td>(\d+)</td><td.*?>(.*?)</td></tr>", all_html(app))
    assert [(ways, end, unescape(text)) for ways, end, text in rows] == [("2", "6", "one <b")]
    runs = re.findall(r'<span class="pv-words">(.*?)</span> <small>(.*?)</small>', all_html(app))
    assert [(unescape(text), told) for text, told in runs] == [
        ("one <b", "1 block, 6 tokens"), (" book closed", "2 blocks, 12 tokens"), (">story", "1 block, 6 tokens"),
    ]  # fmt: skip


def test_a_file_that_is_none_is_refused_in_words() -> None:
    now = Shown()
    open_file(now, "x.json", b'{"schema": 1, "events": [{"type": "Nothing"}]}')
    assert now.problem == "Event 0: unknown event type 'Nothing'."
    open_file(now, "x.msgpack", b"PK\x03\x04")
    assert now.problem == "This is no recording: message 0, at byte 0, cannot be read."
    assert now.source is None


def test_a_partial_view_says_since_when_and_what_that_means(open_page: OpenPage) -> None:
    history = History()
    history.add_gap(0, 4)
    history.add_message(5, payload(stored([7], 6, [1, 2], 2), removed(99)))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test")))
    app.run()
    assert sentences(app)[-3:] == [
        "Partial view since moment 1: messages 0 to 4 never came. "
        "Blocks stored in them are not shown, and some that are shown may be gone.",
        "1 block removed that this view never saw stored.",
        "1 tree below whose beginning is not stored: no prompt can reach them until it is stored again.",
    ]


def test_a_restart_is_told_for_as_long_as_it_explains_the_view(open_page: OpenPage) -> None:
    history = History()
    history.add_message(0, payload(stored([7], None, [1, 2], 2)))
    history.add_restart()
    history.add_message(0, payload(stored([8], None, [1, 2], 2)))
    history.add_message(1, payload(stored([9], None, [1, 3], 2)))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test")))
    app.run()
    restarted = "The server restarted at moment 2: its cache was empty, and the view started over."
    assert (figure(app, "report.num_blocks"), restarted in sentences(app)) == ("2", True)
    app.slider(key="remote_moment").set_value(1).run()
    assert (figure(app, "report.num_blocks"), restarted in sentences(app)) == ("1", False)


def test_each_rank_is_looked_at_by_itself(open_page: OpenPage) -> None:
    history = History()
    history.add_message(0, payload(stored([7], None, [1, 2], 2), rank=0))
    history.add_message(0, payload(stored([7, 8, 9], None, [1, 2, 3, 4, 5, 6], 2), rank=3))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test")))
    app.run()
    assert figure(app, "report.num_blocks") == "1"
    app.selectbox(key="remote_rank").set_value(3).run()
    assert figure(app, "report.num_blocks") == "3"


def test_the_name_of_a_file_is_text_and_nothing_else(open_page: OpenPage) -> None:
    app = open_page(PAGE)
    name = "![x](http://a.b/c.png)<img src=y> **b** :red[r].msgpack"
    open_file(app.session_state["remote_shown"], name, RECORDED.read_bytes())
    app.run()
    assert f"The file {name}" in unescape(all_html(app))
    assert not [element for element in (*app.markdown, *app.header, *app.subheader) if "a.b" in element.value]
    assert "<img src=y>" not in all_html(app)


def test_an_export_opens_again() -> None:
    now = Shown()
    open_recorded(now)
    assert now.source is not None
    text = now.source.trace().to_json()
    again = Shown()
    open_file(again, "trace.json", text.encode())
    assert again.source is not None
    assert again.source.at(24).findable == now.source.at(24).findable
    assert Trace.from_json(text).num_steps == 24


def test_an_export_opens_on_the_page_for_traces_too(open_page: OpenPage) -> None:
    now = Shown()
    open_recorded(now)
    assert now.source is not None
    app = open_page("pages/open_trace.py")
    app.session_state["chosen_trace_file"] = TakenFile("vllm.json", now.source.trace().to_json())
    app.run()
    wait_until(lambda: FROM_A_SERVER in sentences(app.run()), "reading the trace")
    expected = counted(24)
    assert {key: figure(app, key) for key in expected} == expected


def test_a_trace_of_our_own_engine_opens_with_its_places(open_page: OpenPage) -> None:
    engine = Engine(EngineConfig(model="tiny-random", block_size=4, num_blocks=12, attention_backend="reference"))
    engine.generate(["abcdefgh"], SamplingParams(max_tokens=4, ignore_eos=True))
    app = open_page(PAGE)
    open_file(app.session_state["remote_shown"], "own.json", engine.trace.to_json().encode())
    app.run()
    assert (figure(app, "report.num_blocks"), figure(app, "report.pool_blocks")) == ("2", "12")
    assert "places" not in map_payload(app)


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("events", "127.0.0.1:5557", "'127.0.0.1:5557' does not begin with tcp://. Example: tcp://127.0.0.1:5557."),
        ("events", "file:///etc/passwd", "'file:///etc/passwd' does not begin with tcp://."),
        ("api", "http://169.254.169.254/latest", "169.254.169.254 is a link-local address; those are never asked."),
        ("api", "gopher://x:1", "'gopher://x:1' does not begin with http:// or https://."),
    ],
)
def test_an_address_that_cannot_be_used_is_told(open_page: OpenPage, field: str, typed: str, sentence: str) -> None:
    app = open_page(PAGE)
    app.text_input(key=field).set_value(typed)
    app.button(key="attach").click().run()
    assert sentences(app)[0].startswith(sentence)


def test_nothing_listens(open_page: OpenPage) -> None:
    port = free_port()
    app = open_page(PAGE)
    app.text_input(key="events").set_value(f"tcp://127.0.0.1:{port}")
    app.text_input(key="replay").set_value("")
    app.text_input(key="api").set_value("")
    app.button(key="attach").click().run()
    assert sentences(app)[0].startswith(f"Nothing listens at tcp://127.0.0.1:{port}. Start the server there")
    assert sentences(app)[1] == NOTHING_YET
    assert "data-figure" not in all_html(app)


class TestWhoMayAsk:
    """Visitors of a room reach this machine's servers and the presenter's, nothing else."""

    @staticmethod
    def of(host: str) -> ServerAddresses:
        return ServerAddresses(events_address(f"tcp://{host}:5557"))

    @pytest.mark.parametrize("presenter", [None, "127.0.0.1", "::1"])
    def test_the_presenter_may_type_any(self, presenter) -> None:
        assert refusal(self.of("10.1.2.3"), presenter, set()) == ""

    def test_a_visitor_may_use_this_machine_and_what_the_presenter_attached(self) -> None:
        far = self.of("10.1.2.3")
        assert refusal(self.of("127.0.0.1"), "192.168.0.9", set()) == ""
        assert far.events is not None
        assert refusal(far, "192.168.0.9", {far.events}) == ""
        assert refusal(far, "192.168.0.9", set()) == (
            "Only the presenter can attach to tcp://10.1.2.3:5557: ask them to do it first."
        )

    def test_a_list_in_the_environment_binds_everybody(self, monkeypatch) -> None:
        monkeypatch.setenv("PAGED_KV_SERVERS", "tcp://10.1.2.3:5557, http://10.1.2.3:8000/")
        assert refusal(self.of("10.1.2.3"), None, set()) == ""
        assert refusal(self.of("127.0.0.1"), None, set()) == ""
        assert refusal(self.of("10.9.9.9"), None, set()) == (
            "tcp://10.9.9.9:5557 is not one of the servers that this app may use."
        )
