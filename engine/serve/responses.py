"""Outputs as the JSON that OpenAI's clients read: a whole response, or chunks of a stream."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.outputs import RequestOutput, SequenceOutput
from engine.serve.protocol import CompletionRequest

Json = dict[str, Any]
DONE = "data: [DONE]\n\n"
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Line ends that JSON leaves as they are. In JSON they can only stand within a text, where escapes may."""


@dataclass
class CompletionResponse:
    """The response to one HTTP request. `_sent[i]`: characters and tokens of choice i that were streamed already."""

    completion: CompletionRequest
    model: str
    name: str = field(init=False)
    created: int = field(init=False)
    _sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    _ended: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.name = ("chatcmpl-" if self.completion.is_chat else "cmpl-") + uuid.uuid4().hex
        self.created = int(time.time())

    def whole(self, outputs: Sequence[RequestOutput], num_cached: int) -> Json:
        """All choices, prompt by prompt."""
        choices = [
            self._choice(prompt, output, sequence)
            for prompt, output in enumerate(outputs)
            for sequence in output.outputs
        ]
        kind = "chat.completion" if self.completion.is_chat else "text_completion"
        beside = {"prompt_token_ids": list(outputs[0].prompt_token_ids)} if self._names_ids_beside else {}
        return self._envelope(kind, choices) | beside | {"usage": usage(outputs, num_cached)}

    @property
    def _names_ids_beside(self) -> bool:
        """As vLLM: the prompt's ids stand beside the choices of a chat, within those of a completion."""
        return self.completion.return_token_ids and self.completion.is_chat

    def first_chunks(self) -> Iterator[str]:
        """The first events of a stream: in a chat, the role of each choice."""
        if self.completion.is_chat:
            for index in range(self.completion.params.n):
                yield self._event([_choice_chunk(index, {"delta": {"role": "assistant", "content": ""}}, None)])

    def chunks(self, prompt: int, output: RequestOutput) -> Iterator[str]:
        """What is new in an output, as server-sent events."""
        for sequence in output.outputs:
            index = prompt * self.completion.params.n + sequence.index
            num_characters, num_tokens = self._sent.get(index, (0, 0))
            new = sequence.text[num_characters:]
            has_ended = sequence.finish_reason is not None and index not in self._ended
            if not new and not has_ended:
                continue
            if has_ended:
                self._ended.add(index)
            content: Json = {"delta": {"content": new}} if self.completion.is_chat else {"text": new}
            choice = _choice_chunk(index, content, sequence.finish_reason)
            beside: Json = {}
            if self.completion.return_token_ids:
                choice["token_ids"] = list(sequence.token_ids[num_tokens:])
                if index not in self._sent:
                    (beside if self.completion.is_chat else choice)["prompt_token_ids"] = list(output.prompt_token_ids)
            self._sent[index] = len(sequence.text), len(sequence.token_ids)
            yield self._event([choice], beside)

    def last_chunks(self, outputs: Sequence[RequestOutput], num_cached: int) -> Iterator[str]:
        """The last events of a stream."""
        if self.completion.include_usage:
            yield self._event([], {"usage": usage(outputs, num_cached)})
        yield DONE

    def _choice(self, prompt: int, output: RequestOutput, sequence: SequenceOutput) -> Json:
        index = prompt * self.completion.params.n + sequence.index
        content: Json = {"text": sequence.text}
        if self.completion.is_chat:
            content = {"message": {"role": "assistant", "content": sequence.text}}
        choice = _choice_chunk(index, content, sequence.finish_reason)
        if self.completion.return_token_ids:
            choice["token_ids"] = list(sequence.token_ids)
            if not self.completion.is_chat:
                choice["prompt_token_ids"] = list(output.prompt_token_ids)
        return choice

    def _event(self, choices: list[Json], beside: Json | None = None) -> str:
        kind = "chat.completion.chunk" if self.completion.is_chat else "text_completion"
        return event_of(self._envelope(kind, choices) | (beside or {}))

    def _envelope(self, kind: str, choices: list[Json]) -> Json:
        return {"id": self.name, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def usage(outputs: Sequence[RequestOutput], num_cached: int) -> Json:
    """Tokens of all prompts and all their choices."""
    num_prompt = sum(len(output.prompt_token_ids) for output in outputs)
    num_completion = sum(len(sequence.token_ids) for output in outputs for sequence in output.outputs)
    return {
        "prompt_tokens": num_prompt,
        "completion_tokens": num_completion,
        "total_tokens": num_prompt + num_completion,
        "prompt_tokens_details": {"cached_tokens": num_cached},
    }


def event_of(value: Json) -> str:
    """One server-sent event, on one line by any reader's idea of a line."""
    return f"data: {json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)}\n\n"


def _choice_chunk(index: int, content: Json, finish_reason: str | None) -> Json:
    return {"index": index, **content, "logprobs": None, "finish_reason": finish_reason}
