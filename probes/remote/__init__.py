"""Another machine, asked through ssh, Slurm or Kubernetes: nothing is installed there, nothing is written there."""

from __future__ import annotations

from knowledge.errors import GpudiagError
from knowledge.language import NO_TEXT, Text

__all__ = ["ConnectError"]


class ConnectError(GpudiagError):
    """A machine that cannot be reached, or on which nothing of ours can run. The hint says what to do about it.

    `why` and `advice` are the same in both languages, for surfaces that have one.
    """

    def __init__(self, why: Text, *, hint: Text | None = None) -> None:
        self.why, self.advice = why, hint or NO_TEXT
        super().__init__(why.en, hint=self.advice.en)

    def in_(self, language: str) -> str:
        """The sentence, and what to do about it below."""
        why, hint = self.why.in_(language), self.advice.in_(language)
        return f"{why}\n  {hint}" if hint else why

    @property
    def text(self) -> Text:
        """The sentence and what to do about it, in both languages."""
        return Text(self.in_("en"), self.in_("zh"))
