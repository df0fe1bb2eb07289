"""The page over the recorded stream, without a browser: its figures are those of the plain JSON, at every moment."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

from engine import Engine, EngineConfig, SamplingParams
from engine.remote.addresses import events_address, http_address
from engine.remote.history import History
from engine.remote.metrics import MetricsSample
from engine.remote.recording import Recorder, read_frames
from engine.remote.report import report_of
from engine.remote.server import RemoteServer, ServerAddresses
from engine.trace.source import SourceFacts, WholeTrace
from engine.trace.trace import Trace
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, figure, sentences
from tests.helpers.app_server import ROOT, free_port
from tests.helpers.kv_stream import payload, removed, stored, wait_until
from tests.helpers.waiting import PATIENCE, until
from views.remote.charts import WITHOUT_METRICS
from views.remote.connections import refusal
from views.remote.picture import HEIGHT_WITH_WORDS, NO_EVENTS, NOTHING_SHARED, NOTHING_YET
from views.remote.viewed_source import RECORDED, ViewedSource, open_file, open_recorded
from views.remote.vocabulary import BY_SERVER, IDS
from views.server.model_registry import model_registry
from views.trace.file_picker import TakenFile
from views.trace.page import FROM_A_SERVER

PAGE = "pages/remote_server.py"
PLAIN = [json.loads(line) for line in (ROOT / "tests/data/vllm-0.32-kv-events.jsonl").read_text("utf-8").splitlines()]


def counted(num_messages: int) -> dict[str, str]:
    """The page's figures after so many messages, from the JSON alone."""
    copies: Counter[int] = Counter()
    totals: Counter[str] = Counter()
    for message in PLAIN[:num_messages]:
        for event in message["events"]:
            totals[event["type"]] += len(event["block_hashes"])
            copies.update(dict.fromkeys(event["block_hashes"], 1 if event["type"] == "BlockStored" else -1))
    held = +copies
    return {
        "report.num_blocks": str(len(held)),
        "report.num_extra_copies": str(held.total() - len(held)),
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


def tree_nodes(app: AppTest) -> list[dict]:
    [nodes] = [data["nodes"] for e in app.get("bidi_component") if "nodes" in (data := json.loads(e.proto.json))]
    return nodes


def timeline_rows(app: AppTest) -> list[list[str]]:
    """Of the table under the chart, its head first."""
    [table] = [t for t in re.findall(r"<table.*?</table>", all_html(app), re.S) if "<caption>Over time" in t]
    rows = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", table, re.S)]
    return [[unescape(cell) for cell in row] for row in rows]


def test_without_a_source_the_page_says_what_to_do(open_page: OpenPage) -> None:
    app = open_page(PAGE)
    assert sentences(app)[0].startswith("No server at hand? Open the recorded stream, or start one on this machine:")
    assert app.button(key="close_remote").disabled


def test_the_recorded_stream_is_labelled_and_its_figures_are_the_jsons(open_page: OpenPage) -> None:
    app = recorded(open_page)
    assert "<h2>Recorded from vLLM 0.32</h2>" in all_html(app)
    assert "Recorded earlier: no server is contacted." in sentences(app)
    for moment in (24, 1, 6, 11, 15, 23):
        app.slider(key="remote_moment").set_value(moment).run()
        expected = counted(moment)
        assert {key: figure(app, key) for key in expected} == expected, f"at moment {moment}"


def test_rates_are_shown_at_every_step_of_a_stream_with_timestamps(open_page: OpenPage) -> None:
    """Up to the second of the moment's message: all that was stored in those seconds, over as many."""
    app = recorded(open_page)
    messages = [msgspec.msgpack.decode(body) for _topic, _number, body in read_frames(RECORDED.read_bytes())]
    for moment in (1, 5, 24):
        app.slider(key="remote_moment").set_value(moment).run()
        seconds = [int(time) for time, _events, _rank in messages]
        until_now = [events for _time, events, _rank in messages][: sum(s <= seconds[moment - 1] for s in seconds)]
        seen = [event for events in until_now for event in events]
        for kind, key in (("BlockStored", "stored"), ("BlockRemoved", "removed")):
            count = sum(len(event["block_hashes"]) for event in seen if event["type"] == kind)
            rate = count / (seconds[moment - 1] - seconds[0] + 1)
            assert figure(app, f"report.{key}_per_second") == f"{rate:.1f}", f"at moment {moment}"


def test_the_recorded_stream_with_branches_opens_on_the_prefix_that_four_prompts_share(open_page: OpenPage) -> None:
    app = open_page(PAGE).button(key="open_branches").click().run()
    assert "<h2>Recorded from vLLM 0.32</h2>" in all_html(app)
    report = report_of(source := app.session_state["remote_shown"].source, source.at(source.last_step), 0)
    roots = [node for node in report.radix_tree.nodes if node.depth == 0]
    assert [(len(r.blocks), r.num_tokens, r.num_continuations) for r in roots] == [(2, 64, 4), (1, 32, 3)]
    assert [node["open"] for node in tree_nodes(app)] == [True] + 8 * [False]
    shown = ("num_blocks", "num_stored", "num_removed", "pool_blocks")
    assert [figure(app, f"report.{name}") for name in shown] == ["22", "89", "67", "24"]
    [head, *rows] = timeline_rows(app)
    assert head[-3:] == ["hit rate", "cache in use", "preempted"]
    totals = [sum(int(row[column] or 0) for row in rows) for column in (2, 3, 6)]
    assert totals == [89, 67, 6]


def test_another_recording_opens_at_its_last_step(open_page: OpenPage) -> None:
    app = open_page(PAGE).button(key="open_branches").click().run()
    assert app.slider(key="remote_moment").value == 112
    app = app.button(key="open_recorded").click().run()
    assert app.slider(key="remote_moment").value == 24


def test_text_of_the_stored_blocks_fits_their_slots(open_page: OpenPage) -> None:
    app = recorded(open_page)
    [height] = [json.loads(e.proto.json)["height"] for e in app.get("bidi_component") if "payload" in e.proto.json]
    assert height == HEIGHT_WITH_WORDS


def test_fields_missing_from_the_stream_are_unknown(open_page: OpenPage) -> None:
    app = recorded(open_page)
    app.slider(key="remote_moment").set_value(5).run()
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


def test_the_prefix_tree_shows_ids_until_a_tokenizer_is_chosen(open_page: OpenPage) -> None:
    app = recorded(open_page)
    app.slider(key="remote_moment").set_value(1).run()
    [node] = tree_nodes(app)
    assert node["words"] == " ".join(map(str, PLAIN[0]["events"][0]["token_ids"][:24])) + " …"


def test_shared_prefixes_are_listed_with_their_text(open_page: OpenPage) -> None:
    history = History()
    history.add_message(0, payload(stored([1, 2], None, list(b"one <b>story"), 6)))
    history.add_message(1, payload(stored([3], 1, list(b" book "), 6), stored([4], 3, list(b"closed"), 6)))
    app = open_page(PAGE)
    # The first time on a machine its kernels are compiled, too: longer than PATIENCE beside other work.
    until(lambda: model_registry().request("tiny-random").model is not None, 4 * PATIENCE, "loading the vocabulary")
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test", model="tiny-random")))
    app.run()
    rows = re.findall(r"<tr><td data-continuations>(\d+)</td><td>(\d+)</td><td.*?>(.*?)</td></tr>", all_html(app))
    assert [(ways, end, unescape(text)) for ways, end, text in rows] == [("2", "6", "one <b")]
    assert [(node["words"], node["facts"], node["depth"], node["open"]) for node in tree_nodes(app)] == [
        ("one <b", "1 block, 6 tokens, 2 branches", 0, True), (" book closed", "2 blocks, 12 tokens", 1, False),
        (">story", "1 block, 6 tokens", 1, False),
    ]  # fmt: skip
    assert NOTHING_SHARED not in sentences(app)


def attached(open_page: OpenPage) -> tuple[AppTest, RemoteServer]:
    """The page over a server with one block of three tokens, which is never asked: its threads do not run."""
    server = RemoteServer(ServerAddresses(None, api=http_address("http://127.0.0.1:1")))
    server.history.add_message(0, payload(stored([1], None, [464, 3290, 198], 3)))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(server)
    return app, server


def words_of(app: AppTest) -> tuple[str, list[str]]:
    """Of the prefix tree, and of the slots of the map."""
    [node] = tree_nodes(app)
    [frame] = map_payload(app)["frames"]
    return node["words"], [text for _id, text in frame["new_tokens"]]


def test_tokens_are_text_where_the_server_writes_it(open_page: OpenPage) -> None:
    app, server = attached(open_page)
    assert server.detokenizer is not None
    server.detokenizer.state = "answers"
    app.run()
    assert app.selectbox(key=f"remote_words_{BY_SERVER}").value == BY_SERVER
    assert words_of(app) == ("464 3290 198", ["464", "3290", "198"])
    asked = {(464, 3290, 198), (464,), (3290,), (198,)}
    assert set(server.detokenizer._waiting) == asked
    server.detokenizer._texts |= {(464, 3290, 198): "the <b>dog\n", (464,): "the", (3290,): " <b>dog", (198,): None}
    app.run()
    assert words_of(app) == ("the <b>dog↵", ["the", "·<b>dog", "198"])
    app.selectbox(key=f"remote_words_{BY_SERVER}").set_value(IDS).run()
    assert words_of(app) == ("464 3290 198", ["464", "3290", "198"])


def test_where_the_server_writes_no_text_ids_stay_and_a_sentence_says_why(open_page: OpenPage) -> None:
    app, server = attached(open_page)
    assert server.detokenizer is not None
    server.detokenizer.state, server.detokenizer.problem = "refuses", "http://a:1/detokenize answered with status 404."
    app.run()
    assert app.selectbox(key=f"remote_words_{IDS}").options[0] == IDS
    assert words_of(app) == ("464 3290 198", ["464", "3290", "198"])
    why = (
        "The server writes no text for its tokens, so their ids are shown: "
        "http://a:1/detokenize answered with status 404."
    )
    assert why in sentences(app)


def test_the_time_axis_counts_the_recorded_stream_by_seconds(open_page: OpenPage) -> None:
    app = recorded(open_page)
    head, *rows = timeline_rows(app)
    assert head == ["time, UTC", "blocks stored", "stored", "evicted"]
    stored_so_far, evicted = sum(int(row[2]) for row in rows), sum(int(row[3]) for row in rows)
    assert (stored_so_far, evicted, int(rows[-1][1])) == (37, 16, 21)
    assert WITHOUT_METRICS in sentences(app)


def test_the_time_axis_holds_hit_rate_and_preemptions_where_a_recording_has_metrics(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, Recorder(tmp_path / "r.msgpack") as recorder:
        for number, (queries, hits, preempted) in enumerate(((0.0, 0.0, 0.0), (40.0, 10.0, 2.0), (40.0, 10.0, 3.0))):
            now = 1_000.0 + number
            patched.setattr("engine.remote.recording.time.time", lambda now=now: now)  # the server's clock is ours
            recorder.add_message(number, payload(stored([number], None, [number], 1), timestamp=now))
            sample = MetricsSample(
                now, kv_usage=0.25, prefix_queries=queries, prefix_hits=hits, num_preemptions=preempted
            )
            recorder.add_sample(sample)
    app = open_page(PAGE)
    open_file(app.session_state["remote_shown"], "r.msgpack", (tmp_path / "r.msgpack").read_bytes())
    app.run()
    head, *rows = timeline_rows(app)
    assert head == ["time, UTC", "blocks stored", "stored", "evicted", "hit rate", "cache in use", "preempted"]
    assert [row[4:] for row in rows if row[5]] == [["", "25.0", ""], ["25.0", "25.0", "2"], ["25.0", "25.0", "1"]]
    assert WITHOUT_METRICS not in sentences(app)


def test_a_file_that_is_no_trace_is_refused() -> None:
    now = ViewedSource()
    open_file(now, "x.json", b'{"schema": 1, "events": [{"type": "Nothing"}]}')
    assert now.problem == "Event 0: unknown event type 'Nothing'."
    open_file(now, "x.msgpack", b"PK\x03\x04")
    assert now.problem == "This is not a recording: message 0, at byte 0, cannot be read."
    assert now.source is None


def test_a_partial_view_says_since_when(open_page: OpenPage) -> None:
    history = History()
    history.add_gap(0, 4)
    history.add_message(5, payload(stored([7], 6, [1, 2], 2), removed(99)))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test")))
    app.run()
    assert sentences(app)[-4:] == [
        "Partial view since moment 1: messages 0 to 4 were lost. Blocks stored in them are not shown, and some "
        "that are shown may have been evicted.",
        "1 block was removed that this view never saw stored.",
        "1 tree below begins after a block that is not stored: no prompt can hit it until that block is stored again.",
        NOTHING_SHARED,
    ]


def test_a_restart_is_reported_while_it_affects_the_view(open_page: OpenPage) -> None:
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


def test_each_rank_is_shown_separately(open_page: OpenPage) -> None:
    history = History()
    history.add_message(0, payload(stored([7], None, [1, 2], 2), rank=0))
    history.add_message(0, payload(stored([7, 8, 9], None, [1, 2, 3, 4, 5, 6], 2), rank=3))
    app = open_page(PAGE)
    app.session_state["remote_shown"].show(WholeTrace(history.trace(), SourceFacts("test")))
    app.run()
    assert figure(app, "report.num_blocks") == "1"
    app.selectbox(key="remote_rank").set_value(3).run()
    assert figure(app, "report.num_blocks") == "3"


def test_a_file_name_is_never_html_or_markdown(open_page: OpenPage) -> None:
    app = open_page(PAGE)
    name = "![x](http://a.b/c.png)<img src=y> **b** :red[r].msgpack"
    open_file(app.session_state["remote_shown"], name, RECORDED.read_bytes())
    app.run()
    assert f"The file {name}" in unescape(all_html(app))
    assert not [element for element in (*app.markdown, *app.header, *app.subheader) if "a.b" in element.value]
    assert "<img src=y>" not in all_html(app)


def test_an_export_opens_again() -> None:
    now = ViewedSource()
    open_recorded(now)
    assert now.source is not None
    text = now.source.trace().to_json()
    again = ViewedSource()
    open_file(again, "trace.json", text.encode())
    assert again.source is not None
    assert again.source.at(24).prefix_cache == now.source.at(24).prefix_cache
    assert Trace.from_json(text).num_steps == 24


def test_an_export_opens_on_the_page_for_traces_too(open_page: OpenPage) -> None:
    now = ViewedSource()
    open_recorded(now)
    assert now.source is not None
    app = open_page("pages/open_trace.py")
    app.session_state["chosen_trace_file"] = TakenFile("vllm.json", now.source.trace().to_json())
    app.run()
    wait_until(lambda: FROM_A_SERVER in sentences(app.run()), "reading the trace")
    expected = counted(24)
    assert {key: figure(app, key) for key in expected} == expected


def test_a_trace_of_this_engine_opens_with_block_ids(open_page: OpenPage) -> None:
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
        (
            "api",
            "http://169.254.169.254/latest",
            "169.254.169.254 is a link-local address, which this app never contacts.",
        ),
        ("api", "gopher://x:1", "'gopher://x:1' does not begin with http:// or https://."),
    ],
)
def test_an_invalid_address_is_reported(open_page: OpenPage, field: str, typed: str, sentence: str) -> None:
    app = open_page(PAGE)
    app.text_input(key=field).set_value(typed)
    app.button(key="attach").click().run()
    assert sentences(app)[0].startswith(sentence)


def test_a_refused_connection_is_reported(open_page: OpenPage) -> None:
    port = free_port()
    app = open_page(PAGE)
    app.text_input(key="events").set_value(f"tcp://127.0.0.1:{port}")
    app.text_input(key="replay").set_value("")
    app.text_input(key="api").set_value("")
    app.button(key="attach").click().run()
    assert sentences(app)[0].startswith(f"Nothing listens at tcp://127.0.0.1:{port}. Start the server there")
    assert sentences(app)[1] == NOTHING_YET
    assert "data-figure" not in all_html(app)


def test_without_an_events_address_the_cache_is_unknown(open_page: OpenPage) -> None:
    app = open_page(PAGE)
    app.text_input(key="events").set_value("")
    app.text_input(key="replay").set_value("")
    app.text_input(key="api").set_value(f"http://127.0.0.1:{free_port()}")
    app.button(key="attach").click().run()
    assert (NO_EVENTS in sentences(app), NOTHING_YET in sentences(app)) == (True, False)


class TestWhoMayAsk:
    """Visitors of a room reach this machine's servers and the presenter's, nothing else."""

    @staticmethod
    def of(host: str) -> ServerAddresses:
        return ServerAddresses(events_address(f"tcp://{host}:5557"))

    @pytest.mark.parametrize("presenter", [None, "127.0.0.1", "::1"])
    def test_the_presenter_may_attach_to_any_address(self, presenter) -> None:
        assert refusal(self.of("10.1.2.3"), presenter, set()) == ""

    def test_attendees_may_attach_to_localhost_and_the_presenters_server(self) -> None:
        far = self.of("10.1.2.3")
        assert refusal(self.of("127.0.0.1"), "192.168.0.9", set()) == ""
        assert far.events is not None
        assert refusal(far, "192.168.0.9", {far.events}) == ""
        assert refusal(far, "192.168.0.9", set()) == (
            "Only the presenter can attach to tcp://10.1.2.3:5557: ask them to do it first."
        )

    def test_an_allow_list_in_the_environment_applies_to_all(self, monkeypatch) -> None:
        monkeypatch.setenv("PAGED_KV_SERVERS", "tcp://10.1.2.3:5557, http://10.1.2.3:8000/")
        assert refusal(self.of("10.1.2.3"), None, set()) == ""
        assert refusal(self.of("127.0.0.1"), None, set()) == ""
        assert refusal(self.of("10.9.9.9"), None, set()) == (
            "tcp://10.9.9.9:5557 is not on the list of servers that this app may use."
        )
