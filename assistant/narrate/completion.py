"""What is asked of a model and what came back: one whole JSON object, or the reason why it is none."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from assistant.narrate.hosts import Place
from assistant.narrate.reasons import NarrationError, Reason
from knowledge.record import dataclass
from knowledge.text import excerpt

Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Model:
    """What is asked, and by which interpreter."""

    python: str
    place: Place
    name: str  # as litellm names it: provider/model
    key: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. `text` is the model's own: not cleaned, not believed."""

    text: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None  # None where litellm knows no price
    seconds: float


def failure(said: Mapping[str, Any]) -> NarrationError:
    """The error in a line of the child."""
    try:
        reason = Reason(said["error"])
    except ValueError:
        reason = Reason.MALFORMED
    return NarrationError(reason, excerpt(str(said.get("detail", "")), 400))


def completion(said: Mapping[str, Any], began: float) -> Completion:
    """The answer in a line of the child; `began` as time.monotonic. NarrationError for what is no whole answer.

    A stream that was cut ends as ``stop`` all the same, so the closing brace counts.
    """
    if "error" in said:
        raise failure(said)
    text, cost = said["text"], said.get("cost")
    if said.get("finish") == "length":
        raise NarrationError(Reason.CUT, f"stopped at {said.get('out')} tokens")
    if said.get("finish") != "stop":
        raise NarrationError(Reason.REFUSED, f"finish_reason {excerpt(str(said.get('finish')), 40)}")
    _whole(text)
    return Completion(
        text, excerpt(str(said.get("model", "")), 80), int(said.get("in", 0)), int(said.get("out", 0)),
        float(cost) if cost is not None else None, time.monotonic() - began,
    )  # fmt: skip


def _whole(text: str) -> None:
    """One JSON object, opened and closed."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        cut = text.lstrip().startswith("{") and not text.rstrip().endswith("}")
        raise NarrationError(
            Reason.CUT if cut else Reason.MALFORMED, "no closing brace" if cut else "no JSON"
        ) from None
    if not isinstance(found, dict):
        raise NarrationError(Reason.MALFORMED, "no JSON object")
