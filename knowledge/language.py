"""Text in two languages, side by side in the same file."""

from __future__ import annotations

from collections.abc import Mapping

from knowledge.lazy import lazy
from knowledge.record import dataclass

LANGUAGES = ("en", "zh")
# YAML folds a line break into a space; between Han characters, or behind full-width punctuation, none is meant.
_FOLD = lazy(
    " (?:(?<=[\u3001\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f] ) *|(?<=[\u4e00-\u9fff] ) *(?=[\u4e00-\u9fff\uff08]))"
)


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence in English and Chinese. A missing translation falls back to English."""

    en: str
    zh: str = ""

    @classmethod
    def of(cls, data: Mapping[str, str] | str | None) -> Text:
        """From YAML: ``{en: ..., zh: ...}``, or a bare string that needs no translation."""
        if data is None:
            return cls("")
        if isinstance(data, str):
            return cls(data, data)
        return cls(data.get("en", "").strip(), _FOLD.sub("", data.get("zh", "").strip()))

    def in_(self, language: str) -> str:
        """The text in `language`, else in English."""
        return self.zh if language == "zh" and self.zh else self.en

    def __bool__(self) -> bool:
        return bool(self.en or self.zh)


NO_TEXT = Text("")
