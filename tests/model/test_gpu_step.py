"""A decode step of the embedded model on a GPU that is not there: what is launched, copied and waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from engine.model.cuda_graphs import DecodeGraphs, StaticBatch, _Recorded
from engine.model.kv_store import KVStore
from engine.model.llama import LlamaModel, build_model
from engine.model.load_report import ignore_progress
from engine.model.weights.embedded import embedded_folder
from engine.model.weights.hub import read_config
from engine.model.weights.source import DenseSource
from engine.runner import ModelRunner
from engine.sampler import LogitsSampler, SampleRequest
from engine.sampling_params import SamplingParams
from engine.sequence import Sequence, SequenceGroup
from kernels.backend import select_backend
from tests.helpers.models import Item, Tokens
from tests.helpers.pretended_cuda import GPU, PretendedGpu, pretended_gpu

MAX_NODES = 280
SEQUENCES = [Tokens(list(range(1, 20))), Tokens([5, 6]), Tokens([7, 8, 9])]
STEP = [Item(tokens, len(tokens.token_ids) - 1, 1, [2 * i, 2 * i + 1]) for i, tokens in enumerate(SEQUENCES)]


class CountedGraphs(DecodeGraphs):
    """The nodes of a graph are what runs while it is recorded. A replay does nothing here but count."""

    def __init__(self, model: LlamaModel, store: KVStore, gpu: PretendedGpu) -> None:
        super().__init__(model, store, max_num_seqs=4, max_model_len=512, record_after=1)
        self.gpu = gpu
        self.nodes: Counter[str] = Counter()
        self.num_replays = 0
        self.before: tuple[Counter[str], int, int] = (Counter(), 0, 0)
        """Kernels, uploads and reads before the last step."""

    def _record(self, batch: StaticBatch) -> _Recorded:
        logits = self._logits_buffer(len(batch.inputs.seq_lens))
        before = launched(self.gpu)
        logits.copy_(self._logits(batch))
        choice = self._backend.argmax_logsumexp(logits)
        self.nodes = launched(self.gpu) - before

        def replay() -> None:
            self.num_replays += 1

        return _Recorded(batch, replay, logits, choice)


def launched(gpu: PretendedGpu) -> Counter[str]:
    """Triton kernels and ATen operators so far."""
    return Counter(gpu.names()) + gpu.operators


@pytest.fixture(scope="module")
def graphs() -> Iterator[CountedGraphs]:
    """The embedded model's shapes in bfloat16, without its numbers, after two steps of three sequences."""
    config = read_config(embedded_folder(ignore_progress))
    shapes = {
        "embed_tokens": (config.vocab_size, config.hidden_size),
        "q_proj": (config.q_size, config.hidden_size),
        "k_proj": (config.kv_size, config.hidden_size),
        "v_proj": (config.kv_size, config.hidden_size),
        "o_proj": (config.hidden_size, config.q_size),
        "gate_proj": (config.intermediate_size, config.hidden_size),
        "up_proj": (config.intermediate_size, config.hidden_size),
        "down_proj": (config.hidden_size, config.intermediate_size),
        **dict.fromkeys(("norm", "input_layernorm", "post_attention_layernorm"), (config.hidden_size,)),
    }

    def fetch(name: str) -> Tensor | None:
        shape = shapes.get(name.removesuffix(".weight").rpartition(".")[2])
        return None if shape is None else torch.empty(shape, dtype=torch.bfloat16, device=GPU)

    with pytest.MonkeyPatch.context() as monkeypatch, pretended_gpu(monkeypatch) as gpu:
        model = build_model(config, DenseSource(fetch, torch.bfloat16, GPU, tie_word_embeddings=True))
        store = KVStore(
            num_layers=config.num_layers, num_blocks=8, block_size=16, num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim, dtype=torch.bfloat16, device=GPU, num_cpu_blocks=0,
            backend=select_backend("triton", GPU),
        )  # fmt: skip
        graphs = CountedGraphs(model, store, gpu)
        runner = ModelRunner(model, store, graphs)
        runner.run(STEP)
        graphs.before = launched(gpu), gpu.num_uploads, len(gpu.host_reads)
        logits = runner.run(STEP)
        requests = [
            SampleRequest(row, SequenceGroup("A", 0, SamplingParams(), 0, []), Sequence("A", 0, [], 0))
            for row in range(len(STEP))
        ]
        LogitsSampler(graphs.argmax_logsumexp).sample(logits, requests)
        yield graphs


def test_a_recorded_decode_step_has_few_nodes(graphs: CountedGraphs) -> None:
    """A node is a Triton kernel, or an ATen operator that launches one: neither a view nor an allocation.

    cuBLAS may split a product into a second kernel, which cannot be seen here.
    """
    layers = len(graphs.model.layers)
    assert layers == 30
    kernels = {
        "add_rms_norm_kernel": 2 * layers - 1, "silu_mul_kernel": layers, "rotary_write_kv_kernel": layers,
        "decode_kernel": layers, "argmax_logsumexp_kernel": 1, "mm": 4 * layers + 1, "merge_kernel": 0,
        "_fused_rms_norm": 2,
    }  # fmt: skip
    assert {name: graphs.nodes[name] for name in kernels} == kernels
    assert graphs.nodes.total() <= MAX_NODES, graphs.nodes


def test_a_replayed_greedy_step_is_one_copy_one_replay_and_one_read(graphs: CountedGraphs) -> None:
    kernels, uploads, reads = graphs.before
    assert graphs.num_replays == 2
    assert launched(graphs.gpu) - kernels == Counter()
    assert (graphs.gpu.num_uploads - uploads, graphs.gpu.host_reads[reads:]) == (1, [(len(STEP), 3)])
