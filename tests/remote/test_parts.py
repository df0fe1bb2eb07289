"""The radix tree, metrics, addresses and the command line of the connector."""

from __future__ import annotations

import threading
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.remote.__main__ import line_of, main
from engine.remote.addresses import AddressError, events_address, http_address
from engine.remote.metrics import read_metrics
from engine.remote.radix_tree import chain_of, radix_tree_of
from engine.remote.recording import open_recording, read_frames
from engine.trace.__main__ import main as trace_command_line
from engine.trace.cache_events import BlockStored
from engine.trace.cache_view import CacheView, RankView
from engine.trace.source import SourceFacts
from tests.helpers.app_server import free_port

RECORDING = Path(__file__).resolve().parents[2] / "assets/traces/vllm-0.32-recorded.msgpack"


def view_of(*blocks: tuple[int, int | None, tuple[int, ...]]) -> RankView:
    view = CacheView()
    for block_hash, parent, token_ids in blocks:
        view.store(BlockStored(1, None, block_hash, parent, token_ids, 2, None, None))
    return view.of(0)


BRANCHING = ((1, None, (5, 6)), (2, 1, (7, 8)), (3, 2, (1, 1)), (4, 2, (2, 2)), (5, 4, (3, 3)), (9, None, (5, 7)))


class TestRadixTree:
    def test_tree_nodes_end_where_texts_differ(self):
        tree = radix_tree_of(view_of(*BRANCHING))
        assert [([b.block_hash for b in r.blocks], r.depth, r.first_position) for r in tree.nodes] == [
            ([1, 2], 0, 0), ([4, 5], 1, 4), ([3], 1, 4), ([9], 0, 0),
        ]  # fmt: skip
        assert [r.num_continuations for r in tree.nodes] == [2, 1, 1, 1]
        assert [r.token_ids for r in tree.shared] == [(5, 6, 7, 8)]
        assert (tree.num_roots, tree.num_orphans, tree.num_in_cycles) == (2, 0, 0)

    def test_the_way_to_the_prefix_that_is_shared_most_is_marked_and_comes_first(self):
        """6 tokens with 4 ends save 18, the first 4 of them with 5 ends save 16, and a longer text saves nothing."""
        ends = tuple((number, 4, (number, number)) for number in (6, 7, 8))
        longer = tuple((number, number - 1 if number > 20 else None, (number, 1)) for number in range(20, 30))
        tree = radix_tree_of(view_of(*longer, *BRANCHING, *ends))
        assert [(r.blocks[0].block_hash, r.leads_to_shared) for r in tree.nodes] == [
            (1, True), (4, True), (8, False), (7, False), (6, False), (5, False), (3, False), (20, False), (9, False),
        ]  # fmt: skip

    def test_a_prefix_whose_beginning_is_not_stored_is_not_the_one_to_open(self):
        orphan = ((30, 29, (1, 1)), (31, 30, (2, 2)), (32, 30, (3, 3)), (33, 30, (4, 4)))
        assert not any(node.leads_to_shared for node in radix_tree_of(view_of(*orphan)).nodes)
        both = radix_tree_of(view_of(*orphan, *BRANCHING))
        assert [node.blocks[0].block_hash for node in both.nodes if node.leads_to_shared] == [1]
        assert both.nodes[0].leads_to_shared

    def test_a_missing_parent_is_reported(self):
        tree = radix_tree_of(view_of((2, 1, (7, 8)), (3, 2, (1, 1))))
        assert [node.has_unknown_start for node in tree.nodes] == [True]
        assert (tree.num_roots, tree.num_orphans) == (0, 1)

    def test_cycles_of_parents_terminate(self):
        tree = radix_tree_of(view_of((1, 2, (1, 1)), (2, 1, (2, 2)), (3, 3, (3, 3)), (4, None, (4, 4))))
        assert [r.blocks[0].block_hash for r in tree.nodes] == [4]
        assert tree.num_in_cycles == 3

    @given(parents=st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=12))
    def test_every_block_is_in_one_node_or_in_a_cycle(self, parents):
        blocks = dict(enumerate(parents))
        tree = radix_tree_of(view_of(*((number, parent, (number, number)) for number, parent in blocks.items())))

        def beginning(number: int) -> int | None:
            """Where the way up ends; None in a ring."""
            for _ in range(len(blocks) + 1):
                if blocks[number] not in blocks:
                    return number
                number = blocks[number]
            return None

        def num_ends(number: int) -> int:
            return sum(num_ends(child) for child, parent in blocks.items() if parent == number) or 1

        reachable = [number for number in blocks if beginning(number) is not None]
        assert sorted(block.block_hash for node in tree.nodes for block in node.blocks) == reachable
        assert tree.num_in_cycles == len(blocks) - len(reachable)
        assert tree.num_roots + tree.num_orphans == len({beginning(number) for number in reachable})
        for node in tree.nodes:
            assert node.num_continuations == num_ends(node.blocks[-1].block_hash)  # type: ignore[arg-type]
            assert all(below.parent_block_hash == above.block_hash for above, below in pairwise(node.blocks))

    def test_a_long_chain_and_a_wide_cache_are_traversed(self):
        long = radix_tree_of(view_of(*((n, n - 1 if n else None, (n, n)) for n in range(5_000))))
        assert [len(run.blocks) for run in long.nodes] == [5_000]
        wide = radix_tree_of(view_of(*((n, None, (n, n)) for n in range(1_000))), max_nodes=10)
        assert (len(wide.nodes), wide.num_nodes_hidden) == (10, 990)

    def test_a_prompt_is_matched_as_far_as_it_is_stored(self):
        view = view_of(*BRANCHING)
        assert [b.block_hash for b in chain_of(view, (5, 6, 7, 8, 2, 2, 9, 9))] == [1, 2, 4]
        assert [b.block_hash for b in chain_of(view, (5, 6, 7))] == [1]
        assert chain_of(view, (6, 5)) == ()


VLLM = """# HELP vllm:num_requests_running Number of requests
vllm:num_requests_running{engine="0",model_name="m"} 2.0
vllm:num_requests_running{engine="1",model_name="m"} 1.0
vllm:num_requests_waiting{engine="0"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.25
vllm:prefix_cache_queries_total{engine="0"} 1000.0
vllm:prefix_cache_hits_total{engine="0"} 6e2
vllm:num_preemptions_total{engine="0"} 3.0
vllm:prompt_tokens_total 10
vllm:generation_tokens_total 20
vllm:cache_config_info{block_size="32",num_gpu_blocks="24",note="a \\"quoted\\" {x}"} 1.0
"""
SGLANG = """sglang:num_running_reqs{model_name="m"} 7.0
sglang:num_queue_reqs{model_name="m"} 1.0
sglang:token_usage{model_name="m"} 0.28
sglang:cache_hit_rate{model_name="m"} 0.75
sglang:cached_tokens_total{model_name="m"} 30
sglang:prompt_tokens_total{model_name="m"} 40
sglang:generation_tokens_total{model_name="m"} 5
"""


class TestMetrics:
    def test_metrics_of_vllm(self):
        sample = read_metrics(VLLM, 12.0)
        assert (sample.server, sample.time, sample.num_running, sample.num_waiting) == ("vLLM", 12.0, 3, 4)
        assert (sample.kv_usage, sample.prefix_queries, sample.prefix_hits) == (0.375, 1000, 600)
        assert (sample.num_preemptions, sample.prompt_tokens, sample.generation_tokens) == (3, 10, 20)
        assert (sample.num_blocks, sample.block_size, sample.hit_rate) == (24, 32, None)

    def test_metrics_of_sglang(self):
        sample = read_metrics(SGLANG, 0.0)
        assert (sample.server, sample.num_running, sample.num_waiting, sample.kv_usage) == ("SGLang", 7, 1, 0.28)
        assert (sample.prefix_queries, sample.prefix_hits, sample.hit_rate) == (40, 30, 0.75)
        assert (sample.num_preemptions, sample.num_blocks) == (None, None)

    @pytest.mark.parametrize(
        "line",
        [
            'vllm:prompt_tokens_total{m="x"} 17.0 # {trace_id="abc"} 0.67',
            'vllm:prompt_tokens_total{m="x"} 17.0 1700000000 # {trace_id="a} b"} 0.67 1.5',
            'vllm:prompt_tokens_total 17.0 # {trace_id="abc"} 0.67',
            'vllm:prompt_tokens_total{m="} # {x=\\"y\\"} 3"} 17.0 # {} 0.67',
            'vllm:prompt_tokens_total{m="a\u2028b"} 17.0',
            'vllm:prompt_tokens_total{m="a\x85b\x0bc\rd"} 17.0\r',
            'ray_vllm:prompt_tokens_total{m="x"} 17.0',
            'ray_vllm_prompt_tokens_total{m="x"} 17.0',
            'vllm_prompt_tokens_total{m="x"} 17.0',
        ],
    )
    def test_a_metric_is_parsed_with_any_labels_and_timestamp(self, line):
        sample = read_metrics(f"# TYPE x counter\n{line}\nvllm:generation_tokens_total 2\n", 0.0)
        assert (sample.prompt_tokens, sample.generation_tokens, sample.server) == (17, 2, "vLLM")

    @pytest.mark.parametrize("line", ['vllm:x{m="' + '"a' * 50_000, "vllm:x{" + 'a="b",' * 20_000, "vllm:x{" * 20_000])
    def test_a_metric_line_with_unclosed_labels_is_skipped(self, line):
        assert read_metrics(f"{line}\nvllm:num_requests_running 1", 0.0).num_running == 1

    def test_older_metric_names_of_vllm(self):
        assert read_metrics("vllm:gpu_cache_usage_perc 0.125\n", 0.0).kv_usage == 0.125

    @pytest.mark.parametrize("text", ["", "<html>", "vllm:num_requests_running NaN", "vllm:kv{", "\x00"])
    def test_missing_metrics_are_unknown(self, text):
        told = {name for name, value in asdict(read_metrics(text, 0.0)).items() if value is not None}
        assert told - {"time", "server"} == set()


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("tcp://127.0.0.1:5557", "tcp://127.0.0.1:5557"),
            (" tcp://gpu-box:5557/ ", "tcp://gpu-box:5557"),
            ("tcp://[::1]:5557", "tcp://[::1]:5557"),
        ],
    )
    def test_addresses_of_events(self, text, shown):
        assert str(events_address(text)) == shown

    def test_addresses_of_http(self):
        assert str(http_address("http://gpu-box:8000/v1/")) == "http://gpu-box:8000"
        assert str(http_address("https://gpu-box/api")) == "https://gpu-box:443/api"

    @pytest.mark.parametrize(
        "text",
        [
            "", "127.0.0.1:5557", "file:///etc/passwd", "ipc:///tmp/x", "inproc://x", "http://127.0.0.1:5557",
            "tcp://*:5557", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://a:1/path", "tcp://u:p@a:1",
            "tcp://a:1?x=1", "tcp://169.254.169.254:80", "tcp://[fe80::1]:80", "tcp://a b:1", "x" * 300, "tcp://[:1",
        ],
    )  # fmt: skip
    def test_anything_else_is_refused_for_events(self, text):
        with pytest.raises(AddressError) as error:
            events_address(text)
        assert str(error.value).endswith((".", "5557")) and len(str(error.value)) < 200

    @pytest.mark.parametrize("text", ["tcp://a:1", "ftp://a:1", "http://", "http://u@a:1", "http://169.254.169.254/"])
    def test_anything_else_is_refused_for_http(self, text):
        with pytest.raises(AddressError):
            http_address(text)

    @pytest.mark.parametrize(
        ("host", "is_here"), [("127.0.0.1", True), ("localhost", True), ("[::1]", True), ("10.0.0.1", False)]
    )
    def test_localhost_addresses(self, host, is_here):
        assert events_address(f"tcp://{host}:1").is_this_machine is is_here


class TestCommandLine:
    def test_print_writes_one_line_an_event(self, capsys):
        assert main(["print", str(RECORDING)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 37 + 16 + 24
        assert lines[0].startswith("     1  BlockStored       2940638727080269546  behind None  tokens 2683 359 253 ")

    @pytest.mark.slow
    def test_what_is_replayed_can_be_recorded_again(self, tmp_path):
        events, replay = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
        played = ["replay", str(RECORDING), "--endpoint", events, "--replay-endpoint", replay]
        player = threading.Thread(target=main, args=([*played, "--speed", "1e6", "--wait", "0", "--stay", "8"],))
        player.start()
        again = tmp_path / "again.msgpack"
        assert main(["record", events, str(again), "--replay-endpoint", replay, "--seconds", "5"]) == 0
        player.join()
        originals = [frames[1:] for frames in read_frames(RECORDING.read_bytes())]
        assert [frames[1:] for frames in read_frames(again.read_bytes())] == originals

    def test_trace_tool_reads_what_was_exported(self, tmp_path, capsys):
        file = tmp_path / "trace.json"
        file.write_text(open_recording(RECORDING.read_bytes(), SourceFacts("x")).trace().to_json(), "utf-8")
        assert trace_command_line(["check", str(file)]) == 0
        assert "Memory: places unknown, 21 blocks stored;" in capsys.readouterr().out
        assert trace_command_line(["blocks", str(file), "--step", "1"]) == 0
        assert capsys.readouterr().out.splitlines()[1].startswith(",stored,,,2940638727080269546,2683 359 253 ")

    def test_an_event_is_printed_on_one_line(self):
        event = BlockStored(1, None, "\x1b[2J\n", None, (1,), 1, None, None)
        assert line_of(event).isprintable()

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["print", "nowhere.msgpack"], "No such file"),
            (["print", __file__], "This is not a recording: message 0"),
            (["record", "http://127.0.0.1:1", "x"], "does not begin with tcp://"),
            (["replay", str(RECORDING), "--endpoint", "tcp://256.0.0.1:1"], "Events cannot be published at"),
        ],
    )
    def test_errors_are_one_sentence(self, capsys, tmp_path, monkeypatch, arguments, sentence):
        monkeypatch.chdir(tmp_path)
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert sentence in error and "Traceback" not in error
