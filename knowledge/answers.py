"""The words with which people answer a question: yes, no, I do not know, numbers in words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from knowledge.record import dataclass


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """Phrases in lower case, both languages together, the longest first."""

    yes: tuple[str, ...]
    no: tuple[str, ...]
    dont_know: tuple[str, ...]  # wherever they stand
    inexact: tuple[str, ...]  # wherever they stand: what is said is no single number
    filler: tuple[str, ...]  # say nothing of their own beside a value
    percent: tuple[str, ...]
    numbers: Mapping[str, int]


@cache
def answer_words() -> AnswerWords:
    """The shipped words. FaultsError when the data file is wrong."""
    from knowledge.compiled import shard

    entries = {data["id"]: data for data in shard("answers")}

    def phrases(name: str) -> tuple[str, ...]:
        said = entries[name]["said"]
        return tuple(sorted({*said["en"], *said["zh"]}, key=lambda p: (-len(p), p)))

    return AnswerWords(
        phrases("yes"), phrases("no"), phrases("dont_know"), phrases("inexact"), phrases("filler"),
        phrases("percent"),
        entries["numbers"]["numbers"],
    )  # fmt: skip
