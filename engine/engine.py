"""The engine: requests in, tokens out, one event log.

    step():  schedule -> run -> commit -> advance -> finish

Everything that happens to memory is in `engine.trace`; nothing else draws or counts it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from engine.admission import (
    RequestRefusedError,
    check_prompt,
    check_request_id,
    checked_params,
    checked_token_ids,
    request_id_text,
)
from engine.components import EngineComponents
from engine.config import EngineConfig
from engine.decoding import Decoder, hypotheses, score_of
from engine.error_isolation import RequestErrors, run_isolated
from engine.i18n import _, counted
from engine.kv_cache.block_pool import BlockPool
from engine.kv_cache.invariants import InvariantChecker
from engine.kv_cache.manager import KVCacheManager
from engine.model.interpreter_exit import computing
from engine.outputs import RequestOutput
from engine.sampling_params import SamplingParams
from engine.scheduler import ScheduledSequence, Scheduler
from engine.sequence import Sequence as TokenSequence
from engine.sequence import SequenceGroup
from engine.sequence_manager import SequenceManager
from engine.trace.events import FinishReason, RequestAdded, RequestFinished, RequestRefused, StepCompleted
from engine.trace.state import CacheState
from engine.trace.trace import Trace

Prompt = str | Sequence[int]

_log = logging.getLogger(__name__)


class Engine:
    """A paged-attention engine. Not thread-safe: one caller at a time."""

    def __init__(self, config: EngineConfig | None = None, components: EngineComponents | None = None) -> None:
        """`components`: a model that is loaded already, or a script; without it the config's model is loaded."""
        self.config = config or EngineConfig()
        if components is None:
            from engine.components import build_components

            components = build_components(self.config)
        if components.max_positions is not None:
            asked, model = self.config, str(components.info.get("model"))
            self.config = asked.for_positions(components.max_positions, model)
            if self.config is not asked:  # 512 may have been asked for by name, too
                limits = self.config.max_model_len, asked.max_model_len
                _log.warning("max_model_len is %d instead of %d: %s knows no more positions", *limits, model)
        self.components = components
        self.tokenizer = components.tokenizer
        self.trace = Trace(info={"source": "engine", **components.info})
        pool = BlockPool(
            self.config.num_blocks,
            self.config.block_size,
            self.trace,
            num_cpu_blocks=self.config.num_cpu_blocks,
            free_order=self.config.free_order,
        )
        self.kv = KVCacheManager(
            pool,
            enable_prefix_caching=self.config.enable_prefix_caching,
            num_cpu_blocks=self.config.num_cpu_blocks,
            store=components.store,
        )
        self.scheduler = Scheduler(self.config, self.kv, self.trace)
        self.sequences = SequenceManager(self.kv, self.trace, components.tokenizer, self.config.max_model_len)
        self.decoder = Decoder(self.sequences, components.sampler)
        self._groups: dict[str, SequenceGroup] = {}
        self._refused: set[str] = set()
        self._num_arrivals = 0
        self._checker = InvariantChecker(self.kv, self.trace)
        self._num_steps_without_token = 0

    @property
    def backend(self) -> str:
        """Which attention backend runs."""
        return str(self.trace.info.get("backend", ""))

    @property
    def backend_reason(self) -> str:
        """Why that one, in a sentence."""
        return str(self.trace.info.get("backend_reason", ""))

    # -- requests --

    def add_request(self, prompt: Prompt, params: SamplingParams | None = None, request_id: str | None = None) -> str:
        """Queue a prompt (text or token ids). Returns its id: `A`, `B`, ... unless one is given.

        Raises RequestRefusedError, and logs RequestRefused, when it can never run here. An id that cannot stand in the
        log, because it is no text or too long, is refused under the next free one.
        """
        name = self._next_request_id()
        try:
            if request_id is not None:
                name = request_id_text(request_id)
                check_request_id(name, self._groups)
            params = checked_params(params)
            token_ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else checked_token_ids(prompt)
            check_prompt(self.config, self.components.vocab_size, token_ids, params)
        except RequestRefusedError as error:
            self._refused.add(name)
            self.trace.append(RequestRefused(self.trace.step, name, str(error)))
            raise
        self._enqueue(name, token_ids, params)
        return name

    def abort_request(self, request_id: str) -> None:
        """End a request in whatever state it is; every block comes back. Unknown and finished ids are ignored."""
        group = self._groups.get(request_id)
        if group is None or group.is_finished:
            return
        for seq in reversed(group.live_sequences):
            self.sequences.finish(seq, "abort")
        self._finish(group)
        self._num_steps_without_token = 0

    def forget_request(self, request_id: str) -> None:
        """Drop the tokens and texts of a finished or refused request, for a server that runs for ever."""
        self._refused.discard(request_id)
        group = self._groups.get(request_id)
        if group is not None and group.is_finished:
            self.sequences.release(group)
            del self._groups[request_id]

    def fork_request(self, request_id: str, seed: int | None = None) -> str:
        """Start a new request from where another one is: same tokens, same blocks, copied only when they differ.

        With the parent's own seed (None) it goes on to say the same; another seed lets the two part. Raises
        RequestRefusedError when the request is not running or `max_num_seqs` is reached.
        """
        group = self._groups.get(request_id)
        if group is None or group.status != "running" or group.params.num_sequences > 1:
            raise RequestRefusedError(
                _("Only a running request with one sequence can be forked; {request_id!r} is not.").format(
                    request_id=request_id
                )
            )
        num_running = sum(g.max_num_running_seqs for g in self.scheduler.running)
        if num_running >= self.config.max_num_seqs:
            raise RequestRefusedError(
                counted(
                    "max_num_seqs allows {n} sequence at once, and it is running already.",
                    "max_num_seqs allows {n} sequences at once, and that many are running already.",
                    self.config.max_num_seqs,
                )
            )
        parent, name = group.live_sequences[0], self._next_request_id()
        params = replace(group.params, seed=group.seed if seed is None else seed)
        arrival = self._next_arrival()
        fork = SequenceGroup(name, arrival, params, self._seed(params, arrival), [], "running")
        self._groups[name] = fork
        self.sequences.attach_child(parent, parent.fork(name, 0), fork)
        self.scheduler.running.append(fork)
        return name

    def preempt_request(self, request_id: str) -> None:
        """Take a running request's blocks away, as the scheduler does when blocks are short. Else no effect."""
        group = self._groups.get(request_id)
        if group is not None and group.status == "running":
            self.scheduler.preempt(group, "asked to make room.")
            self._num_steps_without_token = 0

    def has_unfinished_requests(self) -> bool:
        """Whether any request is waiting, running or swapped out."""
        return self.scheduler.has_unfinished()

    # -- the loop --

    @computing
    def step(self) -> list[RequestOutput]:
        """One scheduler iteration. Returns the requests that got a token or ended."""
        started = time.perf_counter()
        self.trace.step += 1
        items = self.scheduler.schedule()
        if items:
            ran = run_isolated(self.components.runner, items)
            self._fail(ran.errors)
            self._commit(ran.items)
            self._fail(self.decoder.advance(ran.items, ran.logits))
        touched = list(dict.fromkeys([item.group for item in items if item.needs_logits or item.group.is_finished]))
        for group in touched:
            if group.is_finished:
                self._finish(group)
        is_live = bool(touched) or not self.scheduler.has_unfinished()
        self._num_steps_without_token = 0 if is_live else self._num_steps_without_token + 1
        self._complete_step(items, started)
        return [self.output(group.request_id) for group in touched]

    def generate(
        self,
        prompts: Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool | Callable[..., Any] | None = None,
    ) -> list[RequestOutput]:
        """Run prompts to their end; one output a prompt, in order. A refused prompt has `error` and no outputs.

        use_tqdm: whether to draw a progress bar of the prompts that are done and the tokens generated so far, or, as
        vLLM takes it, what makes the bar (`functools.partial(tqdm, leave=False)`). None: in a notebook only, so that a
        script or a server prints nothing it was not asked for; vLLM's default is True.
        """
        params_of = list(params) if isinstance(params, Sequence) else [params] * len(prompts)
        results = [self._try_add(prompt, own) for prompt, own in zip(prompts, params_of, strict=True)]
        accepted = [result for result in results if isinstance(result, str)]
        num_tokens = dict.fromkeys(accepted, 0)
        with _progress_bar(use_tqdm, len(prompts)) as bar:
            while any(not self._groups[name].is_finished for name in accepted):
                outputs = self.step()
                if bar is None:
                    continue
                for output in outputs:
                    if output.request_id in num_tokens:
                        num_tokens[output.request_id] = sum(len(sample.token_ids) for sample in output.outputs)
                num_unfinished = sum(not self._groups[name].is_finished for name in accepted)
                bar.set_postfix(tokens=sum(num_tokens.values()), refresh=False)
                bar.update(len(prompts) - num_unfinished - bar.n)
        return [self.output(result) if isinstance(result, str) else result for result in results]

    # -- looking --

    def output(self, request_id: str) -> RequestOutput:
        """What a request has produced so far. Raises KeyError for an id that was never accepted."""
        group = self._groups[request_id]
        if not group.params.uses_beam_search:
            return self.sequences.output(group, group.sequences)
        if group.is_finished:
            ranked = sorted(hypotheses(group) or group.sequences, key=score_of, reverse=True)
            return self.sequences.output(group, ranked[: group.params.n])
        return self.sequences.output(group, group.live_sequences)

    @property
    def groups(self) -> tuple[SequenceGroup, ...]:
        """Every request that was accepted, in order of arrival, with its params. To look at, not to change."""
        return tuple(self._groups.values())

    def snapshot(self) -> CacheState:
        """Block tables, blocks, queues and counters now: the fold of the trace, a copy of your own."""
        return self.trace.at(self.trace.num_steps)

    def check_invariants(self) -> None:
        """Raises InvariantError with the broken rule named."""
        self._checker.check([seq for group in self._groups.values() for seq in group.live_sequences])
        self._checker.check_progress(self._num_steps_without_token, self.scheduler.max_steps_to_next_token())

    # -- experiments on memory --

    def shuffle_blocks(self, permutation: Sequence[int]) -> None:
        """Move physical block `i` to `permutation[i]`, data and tables together: the output must not notice."""
        self.kv.shuffle(permutation)

    def clear_prefix_cache(self) -> None:
        """Evict everything from the prefix cache; requests in flight keep their blocks."""
        self.kv.pool.clear_prefix_cache()

    # -- inside --

    def _enqueue(self, name: str, token_ids: list[int], params: SamplingParams) -> None:
        pieces = tuple(self.tokenizer.display(token_id) for token_id in token_ids)
        self.trace.append(
            RequestAdded(
                self.trace.step, name, tuple(token_ids), pieces, params.max_tokens, params.n, params.beam_width
            )
        )
        first = TokenSequence(name, 0, token_ids, len(token_ids))
        arrival = self._next_arrival()
        group = SequenceGroup(name, arrival, params, self._seed(params, arrival), [first])
        self._groups[name] = group
        self.sequences.on_added(group, first)
        if self.config.parallel_sampling == "prefix_cache" and not params.uses_beam_search:
            for _index in range(params.n - 1):
                self.sequences.fork(first, group)
        self.scheduler.add(group)

    def _try_add(self, prompt: Prompt, params: SamplingParams | None) -> str | RequestOutput:
        name = self._next_request_id()
        try:
            return self.add_request(prompt, params, name)
        except RequestRefusedError as error:
            return RequestOutput(name, finished=True, error=str(error))

    def _fail(self, errors: RequestErrors) -> None:
        """End the requests in `errors`; `RequestOutput.error` and the trace say why."""
        for group, sentence in errors.messages.items():
            group.error = sentence
            for seq in reversed(group.live_sequences):
                self.sequences.finish(seq, "error")

    def _commit(self, items: list[ScheduledSequence]) -> None:
        for item in items:
            self.kv.commit(item.sequence, item.num_new_tokens)

    def _finish(self, group: SequenceGroup) -> None:
        self.scheduler.finish(group)
        reasons = [seq.finish_reason for seq in group.sequences if seq.finish_reason != "beam_pruned"]
        reason: FinishReason = reasons[0] if reasons and reasons[0] else "length"
        if group.error:
            reason = "error"
        self.trace.append(RequestFinished(self.trace.step, group.request_id, reason, group.error))

    def _complete_step(self, items: list[ScheduledSequence], started: float) -> None:
        self.trace.append(
            StepCompleted(
                self.trace.step,
                sum([item.num_new_tokens for item in items]),
                len(self.scheduler.running),
                len(self.scheduler.waiting) + len(self.scheduler.swapped),
                (time.perf_counter() - started) * 1000,
            )
        )

    def _seed(self, params: SamplingParams, arrival: int) -> int:
        """The request's own seed, or one that follows from the engine's seed and the order of arrival."""
        return params.seed if params.seed is not None else self.config.seed * 1_000_003 + arrival

    def _next_arrival(self) -> int:
        self._num_arrivals += 1
        return self._num_arrivals - 1

    def _next_request_id(self) -> str:
        number = len(self._groups) + len(self._refused)
        while (name := _letters(number)) in self._groups or name in self._refused:
            number += 1
        return name


def _progress_bar(use_tqdm: bool | Callable[..., Any] | None, num_prompts: int) -> AbstractContextManager[Any]:
    """A tqdm bar of `num_prompts`, or a context with None where there is to be no bar.

    Raises ImportError where a bar is asked for and there is no tqdm; a notebook without it has none.
    """
    if use_tqdm is None:
        use_tqdm = _in_notebook() and find_spec("tqdm") is not None
    make: Callable[..., Any]
    if not isinstance(use_tqdm, bool):
        make = use_tqdm
    elif use_tqdm:
        from tqdm import tqdm

        make = tqdm
    else:
        return nullcontext()
    # miniters: it is drawn anew, at most ten times a second, also after steps in which no prompt ended.
    bar: AbstractContextManager[Any] = make(total=num_prompts, desc="Processed prompts", dynamic_ncols=True, miniters=0)
    return bar


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: Jupyter's, VS Code's or Colab's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return "IPKernelApp" in getattr(shell, "config", {})


def _letters(number: int) -> str:
    """0 -> A, 25 -> Z, 26 -> AA: short names that a picture can show."""
    name = ""
    while number >= 0:
        name = chr(ord("A") + number % 26) + name
        number = number // 26 - 1
    return name
