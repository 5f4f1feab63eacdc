"""What the parsers of the collectors `services` and `filesystems` share: the document, and observations from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.observation import Clock, Observation, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context
from probes.parse._json import loaded
from probes.parse._smi_values import Reading

_DENIED = ("EACCES", "EPERM")
_ABSENT = ("ENOENT", "ENOTDIR", "ENODEV", "ENXIO")
AS_ROOT = "needs root: run sudo gpudiag check"


def document(text: str, schema: str) -> Mapping[str, Any]:
    """The JSON document; empty when the text is none, or one of another schema."""
    start = text.find("{")
    try:
        found = loaded(text[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.get("schema") == schema else {}


def sniff(head: str, schema: str) -> int:
    """100 when the document says its schema ahead of anything else."""
    return 100 if f'"schema": "{schema}"' in head[:400] and head.lstrip("\ufeff \n\t").startswith("{") else 0


def mapping(value: object) -> Mapping[str, Any]:
    """`value` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(value: object) -> list[str]:
    """The texts of an array."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """A number of the kernel: whole and not negative; None when `value` is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64 else None


def gap(answer: Mapping[str, Any]) -> Reading | None:
    """Why a collector has no answer; None when it has one."""
    hung, error = answer.get("hung"), answer.get("error")
    if hung is not None:
        return Reading(None, Status.TIMEOUT, f"{hung} did not answer within {answer.get('seconds', '?')} s")
    if error is None:
        return None
    why = str(error).strip() or "it failed without a reason"
    name = why.partition(":")[0]
    if name in _DENIED:
        return Reading(None, Status.DENIED, f"{why}; {AS_ROOT}")
    if name in _ABSENT:
        return Reading(None, Status.UNSUPPORTED, why)
    return Reading(None, Status.TIMEOUT if "deadline" in why else Status.FAILED, why)


class Snapshot:
    """Collects the observations of one document under its host and time."""

    def __init__(self, context: Context, probe: str, revision: int, document: Mapping[str, Any]) -> None:
        host = document.get("host")
        self.host = context.host or (clean(host).strip() if isinstance(host, str) else "")
        self.at = whole(document.get("at_ns"))
        self.out: list[Observation] = []
        self._context, self._probe, self._revision = context, probe, revision

    @property
    def node(self) -> Subject:
        """The node that was looked at."""
        return node(self.host)

    def add(self, fact: str, subject: Subject, reading: Reading | Value, call: str, shown: str = "") -> None:
        """One observation; `call` is what a person can look at, `shown` the raw line."""
        value: Value
        if isinstance(reading, Reading):
            value, status, detail = reading.value, reading.status, reading.detail
        else:
            value, status, detail = reading, Status.OK, ""
        source = Context(clean(call), self.host).at(self._probe, self._revision)
        clock = Clock.REALTIME if self.at is not None else Clock.NONE
        self.out.append(
            Observation(
                fact, subject, value, status, source, self.at, clock, excerpt=excerpt(shown, 300), detail=excerpt(detail)
            )
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The file or command that the document came from, as shown to people."""
        return self._context.source
