"""What one attendee may ask of the shared engine, and the sentence that says so when it is reached."""

from __future__ import annotations

from dataclasses import dataclass

from engine.i18n import _, counted


class RefusedError(ValueError):
    """Asked for more than the room allows. The message is one plain sentence."""


@dataclass(frozen=True)
class QuotaUsage:
    """What an attendee has had since the presenter's last Reset; `num_unfinished`: prompts that have not finished."""

    prompts: int = 0
    tokens: int = 0
    num_unfinished: int = 0

    def with_prompt(self, max_tokens: int) -> QuotaUsage:
        """The usage with one prompt more."""
        return QuotaUsage(self.prompts + 1, self.tokens + max_tokens, self.num_unfinished)

    def without_prompt(self, max_tokens: int) -> QuotaUsage:
        """The usage with one prompt less, which was refused after all."""
        return QuotaUsage(self.prompts - 1, self.tokens - max_tokens, self.num_unfinished)


@dataclass(frozen=True)
class Quota:
    """Of each attendee. Characters of a prompt; new tokens of one reply; prompts at once and in all; tokens in all."""

    longest_prompt: int = 300
    longest_reply: int = 48
    at_once: int = 2
    prompts: int = 20
    tokens: int = 600

    def check_length(self, prompt: str, max_tokens: int) -> None:
        """Raises RefusedError. These hold for the presenter too."""
        if not prompt.strip():
            raise RefusedError(_("The prompt is empty. Type a few words first."))
        if len(prompt) > self.longest_prompt:
            too_many = counted("{n} character", "{n} characters", len(prompt) - self.longest_prompt)
            raise RefusedError(
                _(
                    "Your prompt has {num_prompt} characters; the limit is {longest_prompt}. Shorten it by "
                    "{too_many} and send it again."
                ).format(num_prompt=len(prompt), longest_prompt=self.longest_prompt, too_many=too_many)
            )
        if not 1 <= max_tokens <= self.longest_reply:
            raise RefusedError(
                _("A reply has 1 to {longest_reply} new tokens here; you asked for {max_tokens}.").format(
                    longest_reply=self.longest_reply, max_tokens=max_tokens
                )
            )

    def check_usage(self, usage: QuotaUsage, max_tokens: int) -> None:
        """Raises RefusedError when an attendee has had their share of the engine."""
        if usage.num_unfinished >= self.at_once:
            under_way = counted("{n} of your prompts is", "{n} of your prompts are", usage.num_unfinished)
            raise RefusedError(
                _("{under_way} in progress, the most allowed at once. Wait for one to finish.").format(
                    under_way=under_way
                )
            )
        if usage.prompts >= self.prompts:
            raise RefusedError(
                counted(
                    "You have sent {n} prompt, the most allowed until the presenter resets.",
                    "You have sent {n} prompts, the most allowed until the presenter resets.",
                    self.prompts,
                )
            )
        left = self.tokens - usage.tokens
        if max_tokens > left:
            advice = (
                _("ask for {left} or fewer").format(left=left) if left > 0 else _("wait until the presenter resets")
            )
            allowed = counted("{n} new token", "{n} new tokens", self.tokens)
            raise RefusedError(
                _("Each person may have {allowed} and you have {left} left: {advice}.").format(
                    allowed=allowed, left=left, advice=advice
                )
            )
