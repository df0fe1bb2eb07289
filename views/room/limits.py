"""What one attendee may ask of the shared engine, and the sentence that says so when it is reached."""

from __future__ import annotations

from dataclasses import dataclass


class RefusedError(ValueError):
    """Asked for more than the room allows. The message is one plain sentence."""


@dataclass(frozen=True)
class Spent:
    """What an attendee has had since the presenter's last Reset; `under_way`: prompts that have not finished."""

    prompts: int = 0
    tokens: int = 0
    under_way: int = 0

    def with_prompt(self, max_tokens: int) -> Spent:
        return Spent(self.prompts + 1, self.tokens + max_tokens, self.under_way)


@dataclass(frozen=True)
class Limits:
    """Of each attendee. Characters of a prompt; new tokens of one reply; prompts at once and in all; tokens in all."""

    longest_prompt: int = 300
    longest_reply: int = 48
    at_once: int = 2
    prompts: int = 20
    tokens: int = 600

    def check_length(self, prompt: str, max_tokens: int) -> None:
        """Raises RefusedError. These hold for the presenter too."""
        if not prompt.strip():
            raise RefusedError("The prompt is empty. Type a few words first.")
        if len(prompt) > self.longest_prompt:
            raise RefusedError(f"Your prompt has {len(prompt)} characters; the most is {self.longest_prompt}.")
        if not 1 <= max_tokens <= self.longest_reply:
            raise RefusedError(f"A reply has 1 to {self.longest_reply} new tokens here; you asked for {max_tokens}.")

    def check_share(self, spent: Spent, max_tokens: int) -> None:
        """Raises RefusedError when an attendee has had their share of the engine."""
        if spent.under_way >= self.at_once:
            raise RefusedError(
                f"{spent.under_way} of your prompts are under way, the most at once. Wait for one to end."
            )
        if spent.prompts >= self.prompts:
            raise RefusedError(f"You have sent {self.prompts} prompts, the most until the presenter resets.")
        left = self.tokens - spent.tokens
        if max_tokens > left:
            advice = f"ask for {left} or fewer" if left > 0 else "wait until the presenter resets"
            raise RefusedError(f"Each person may have {self.tokens} new tokens and you have {left} left: {advice}.")
