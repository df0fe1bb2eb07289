"""Token ids as text, through the server's own POST /detokenize: a thread, a cache, and few requests.

    detokenizer.text((464, 3290))     " the dog"; None while it is not known, and it is asked for

Many sequences of ids go into one request. SGLang takes a list of them. vLLM takes one sequence and answers with one
text, so they are put behind each other with the tokens of a separator between, and its answer is split there. Where
the parts are not as many as were asked for, or the server refuses an id among them, each half is asked for alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from engine.i18n import _
from engine.remote.addresses import Address
from engine.remote.http import HttpError, post_json
from engine.remote.scraper import first_model
from engine.remote.stoppable_thread import StoppableThread

TokenIds = tuple[int, ...]
SECONDS_BETWEEN_REQUESTS = 0.2
SECONDS_UNTIL_RETRY, SECONDS_UNTIL_RETRY_WHEN_REFUSED = 2.0, 60.0
SECONDS_TO_ANSWER = 2.0
SECONDS_TO_STOP = 5.0
MAX_IDS_A_REQUEST = 4_096
MAX_WAITING, MAX_KEPT = 4_096, 32_768
"""Sequences that wait for their text, and texts that are kept; the oldest go."""
LONGEST_TEXT = 2_000
"""Characters of one text; more is not kept."""
MAX_UNREADABLE = 32
"""Sequences, one after another, that the server may refuse before it is asked no more."""
STATUS_OF_UNREADABLE = (400, 422, 500)
"""vLLM and SGLang answer so to an id that their vocabulary does not have."""
MAX_SEPARATOR_IDS = 8
SEPARATOR = "<|~|>"
"""No beginning of it is an end of it, so pieces before and after it never form another one with a part of it."""
State = Literal["unknown", "answers", "refuses"]


class Detokenizer(StoppableThread):
    """`state`: whether the server answers; `problem`: why not, in one sentence, or nothing."""

    def __init__(self, address: Address) -> None:
        super().__init__("detokenizer", SECONDS_TO_STOP)
        self.address = address
        self.state: State = "unknown"
        self.problem = ""
        self.num_requests = 0
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._texts: dict[TokenIds, str | None] = {}
        """None: the server has no text for these ids."""
        self._waiting: dict[TokenIds, None] = {}
        self._num_unreadable = 0
        self._model: str | None = None
        self._must_learn = True
        self._separator: TokenIds = ()
        """Its token ids; none where it cannot be used, or need not be."""
        self._padding = ""
        """What the server writes between a part and the separator behind it: a blank, with some vocabularies."""
        self._takes_lists = False

    def text(self, token_ids: Sequence[int]) -> str | None:
        """The text of these ids; None where there is none, or none yet: then it is asked for soon."""
        key = tuple(token_ids)
        with self._lock:
            if key not in self._texts and self.state != "refuses":
                self._waiting.pop(key, None)
                self._waiting[key] = None
                if len(self._waiting) > MAX_WAITING:
                    del self._waiting[next(iter(self._waiting))]
                self._wanted.set()
            return self._texts.get(key)

    @property
    def num_waiting(self) -> int:
        """Sequences of ids that were asked for and have no answer yet."""
        return len(self._waiting)

    def stop(self) -> None:
        """End the thread: a request that is under way ends first."""
        self._stopping.set()
        self._wanted.set()
        super().stop()

    def run(self) -> None:
        """The thread's work: find out how the server answers, then get the texts that are wanted."""
        while not self._stopping.is_set():
            try:
                if self._must_learn:
                    self._learn()
                    self._must_learn, self.state, self.problem = False, "answers", ""
                    if self._waiting:
                        self._wanted.set()
                self._wanted.wait()
                for batch in self._batches():
                    self._get(batch)
            except HttpError as error:
                self._stopping.wait(self._seconds_after(error))

    def _seconds_after(self, error: HttpError) -> float:
        """A server that is away comes back soon, and may have another model then; one that refuses does so for long."""
        self._must_learn, self.problem = True, str(error)
        if error.status is None and self.state != "refuses":
            return SECONDS_UNTIL_RETRY
        with self._lock:
            self.state = "refuses"
            self._waiting.clear()
            self._wanted.clear()
        return SECONDS_UNTIL_RETRY_WHEN_REFUSED

    # -- how the server answers --

    def _learn(self) -> None:
        """Raises HttpError when the server cannot be asked."""
        model = first_model(self.address)
        if model != self._model:
            with self._lock:
                self._texts.clear()
            self._model = model
        self._num_unreadable = 0
        separator = self._tokens_of_separator()
        answer = self._post("/detokenize", {"tokens": [*separator, *separator, *separator] or [0]})
        self._takes_lists = isinstance(answer.get("text"), str)
        self._separator, self._padding = (), ""
        parts = self._text_in(answer).split(SEPARATOR)
        if not self._takes_lists and len(parts) == 4 and parts[1] == parts[2]:
            self._separator, self._padding = separator, parts[1]

    def _tokens_of_separator(self) -> TokenIds:
        """None where the server has no /tokenize."""
        try:
            tokens = self._post("/tokenize", {"prompt": SEPARATOR, "add_special_tokens": False}).get("tokens")
        except HttpError as error:
            if error.status is None:
                raise
            return ()
        if not isinstance(tokens, list) or len(tokens) > MAX_SEPARATOR_IDS:
            return ()
        return tuple(tokens) if all(type(token) is int for token in tokens) else ()

    # -- what is wanted --

    def _batches(self) -> Iterator[list[TokenIds]]:
        """The newest wanted first: that is what somebody looks at now."""
        with self._lock:
            self._wanted.clear()
            waiting = list(reversed(self._waiting))
        can_join = self._takes_lists or bool(self._separator)
        batch: list[TokenIds] = []
        size = 0
        for token_ids in waiting:
            room = len(token_ids) + len(self._separator)
            if batch and (size + room > MAX_IDS_A_REQUEST or not can_join):
                yield batch
                batch, size = [], 0
            batch.append(token_ids)
            size += room
        if batch:
            yield batch

    def _get(self, batch: list[TokenIds]) -> None:
        """One request, or more of them where its answer cannot be told apart."""
        if self._stopping.is_set():
            return
        texts = self._texts_of(batch)
        if texts is None and len(batch) > 1:
            middle = len(batch) // 2
            self._get(batch[:middle])
            self._get(batch[middle:])
            return
        with self._lock:
            for number, token_ids in enumerate(batch):
                self._texts[token_ids] = None if texts is None else texts[number][:LONGEST_TEXT]
                self._waiting.pop(token_ids, None)
            for oldest in list(self._texts)[: max(len(self._texts) - MAX_KEPT, 0)]:
                del self._texts[oldest]

    def _texts_of(self, batch: list[TokenIds]) -> list[str] | None:
        """None where the server refuses an id among them, or where they cannot be told apart."""
        try:
            texts = self._detokenized(batch)
        except HttpError as error:
            if error.status not in STATUS_OF_UNREADABLE or self._num_unreadable > MAX_UNREADABLE:
                raise
            self._num_unreadable += len(batch) == 1
            return None
        if texts is not None:
            self._num_unreadable = 0
        return texts

    def _detokenized(self, batch: list[TokenIds]) -> list[str] | None:
        if self._takes_lists:
            texts = self._post("/detokenize", {"tokens": batch, "skip_special_tokens": False}).get("text")
            if not isinstance(texts, list) or len(texts) != len(batch):
                return None
            return texts if all(isinstance(text, str) for text in texts) else None
        if len(batch) == 1:
            return [self._text_in(self._post("/detokenize", {"tokens": batch[0]}))]
        joined = [token for token_ids in batch for token in (*self._separator, *token_ids)]
        text = self._text_in(self._post("/detokenize", {"tokens": [*joined, *self._separator]}))
        parts = text.split(SEPARATOR)[1:-1]
        return [part.removesuffix(self._padding) for part in parts] if len(parts) == len(batch) else None

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._stopping.wait(SECONDS_BETWEEN_REQUESTS)
        self.num_requests += 1
        named = {"model": self._model} if self._model is not None else {}
        answer = post_json(self.address, path, named | body, seconds=SECONDS_TO_ANSWER)
        return answer if isinstance(answer, dict) else {}

    def _text_in(self, answer: dict[str, Any]) -> str:
        """vLLM names it `prompt`, SGLang `text`. Raises HttpError."""
        text = answer.get("prompt", answer.get("text"))
        if not isinstance(text, str):
            raise HttpError(_("{address}/detokenize answered without a text.").format(address=self.address), 200)
        return text
