"""Reading the documents of collectors that keep raw sysfs files.

A value is the text of a file, ``{"error": "EACCES: ..."}``, ``{"skipped": why}``, or absent. What hung
stands beside the values as ``hung``. Everything else in a document is distrusted: text of another
shape says nothing, and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from knowledge.observation import Clock, Observation, Source, Status, Subject, Value, node
from knowledge.record import dataclass
from knowledge.text import clean
from knowledge.text import excerpt as tidy
from probes.base import Context
from probes.parse._json import loaded

_DENIED = ("EACCES", "EPERM")
_UNSUPPORTED = ("ENOENT", "ENODEV", "ENXIO", "EINVAL", "EOPNOTSUPP", "ENOTSUP", "ENODATA", "ENOTTY")
_WHOLE = re.compile(r"[0-9]{1,20}")


def recognises(head: str, schema: str) -> int:
    """100 when the document that `head` begins names `schema` first; 0 otherwise."""
    return 100 if re.match(rf'\ufeff?\s{{0,40}}\{{\s{{0,40}}"schema":\s{{0,8}}"{re.escape(schema)}"', head) else 0


def load(text: str) -> dict[str, Any]:
    """The document; empty when it is none."""
    try:
        data = loaded(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def table(value: object) -> dict[str, Any]:
    """`value` when it is a mapping; else an empty one."""
    return value if isinstance(value, dict) else {}


def words(value: object) -> str:
    """`value` when it is text, on one line, without control characters; else empty."""
    return " ".join(clean(value).split()) if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    """A count as the kernel prints it; None for anything else."""
    text = words(value)
    return int(text) if _WHOLE.fullmatch(text) else None


def stamp(value: object) -> int | None:
    """A time in ns that can be one; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63 else None


def why_not(value: object, absent: str = "the kernel does not show it") -> tuple[Status, str]:
    """Status and reason of a value that is not there or cannot be used."""
    if value is None:
        return Status.UNSUPPORTED, absent
    if isinstance(value, dict):
        if skipped := words(value.get("skipped")):
            return Status.NOT_ASKED, skipped
        said = words(value.get("error")) or "not understood"
        code = said.split(":", 1)[0]
        if code in _DENIED:
            return Status.DENIED, f"{said}: run sudo gpudiag check"
        return (Status.UNSUPPORTED if code in _UNSUPPORTED else Status.FAILED), said
    return Status.FAILED, f"not understood: {words(value)[:80] or repr(value)[:80]}"


@dataclass(slots=True)
class Sheet:
    """Collects observations of one document; all carry its time and the file that a person can look at."""

    probe: str
    revision: int
    context: Context
    host: str
    at: int | None
    out: list[Observation] = field(default_factory=list)

    @classmethod
    def of(cls, probe: str, revision: int, context: Context, document: Mapping[str, Any]) -> Sheet:
        """For a document; the host that the reader was told beats the one that the document names."""
        return cls(probe, revision, context, context.host or words(document.get("host")), stamp(document.get("at_ns")))

    @property
    def node(self) -> Subject:
        """The machine."""
        return node(self.host)

    def fact(
        self, name: str, subject: Subject, value: Value, call: str, excerpt: str = "", *, at: int | None = None, detail: str = ""
    ) -> None:  # fmt: skip
        """One value, as `call` gave it."""
        if isinstance(value, str):
            value = words(value)
        elif isinstance(value, tuple):
            value = tuple(words(word) for word in value)
        self._add(name, subject, value, Status.OK, call, excerpt, detail, at)

    def missing(self, name: str, subject: Subject, status: Status, detail: str, call: str, excerpt: str = "") -> None:
        """One value that cannot be told, with the reason."""
        self._add(name, subject, None, status, call, excerpt, detail, None)

    def _add(
        self, name: str, subject: Subject, value: Value, status: Status, call: str, excerpt: str, detail: str, at: int | None
    ) -> None:  # fmt: skip
        at = self.at if at is None else at
        clock = Clock.NONE if at is None else Clock.REALTIME
        source = Source(self.probe, tidy(call), None, self.revision)
        self.out.append(
            Observation(name, subject, value, status, source, at, clock, excerpt=tidy(excerpt), detail=tidy(detail))
        )
