"""Errors that are told in the language of whoever asked."""

from __future__ import annotations

from knowledge.errors import GpudiagError
from knowledge.language import NO_TEXT, Text


class ToldError(GpudiagError):
    """What cannot be done, and what to do instead, in both languages."""

    def __init__(self, said: Text, hint: Text = NO_TEXT) -> None:
        super().__init__(said.en, hint=hint.en)
        self._said, self._hint = said, hint

    def in_(self, language: str) -> str:
        """In a language."""
        said, hint = self._said.in_(language), self._hint.in_(language)
        return f"{said}\n  {hint}" if hint else said
