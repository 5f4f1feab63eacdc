"""What a turn of the conversation says, in no particular channel's shape.

Blocks are the parts of `assistant.render.sheet`, which text, Markdown, HTML and JSON already know, and
the diagnosis that the answer rests on. Terminal, TUI and Slack arrange them; none adds a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.render.sheet import Part


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in one language."""

    lang: str
    headline: str  # the answer in one sentence, first of all
    parts: tuple[Part, ...] = ()
    diagnosis: Diagnosis | None = None  # what the answer rests on; without a headline it is the answer
    shown: Diagnosis | None = None  # the part of it that is shown then, when it is not all
    focus: str = ""  # id of the finding that the talk is about now; empty: as before
    hypothetical: bool = False  # nothing of it was seen: facts were assumed
    settled: bool = True  # False: the question stays open (exit code 3)
    suggestions: tuple[str, ...] = ()  # questions that would be understood next
    data: Mapping[str, Any] = field(default_factory=dict)  # for JSON, beside the blocks
