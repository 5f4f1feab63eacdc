"""Observations as JSON objects, whole: what is read back equals what was written.

What is read back may be of another version of gpudiag: a fact that was renamed has its new name, and one that this
version does not know is no observation (`UnknownFactError`).

People and scripts read it too, so names are those of `Observation` and what is empty is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.facts import vocabulary
from knowledge.observation import (
    Clock,
    Event,
    Observation,
    Origin,
    Scalar,
    Scope,
    Series,
    Source,
    Status,
    Subject,
    Value,
)


class UnknownFactError(ValueError):
    """An observation of a fact that this version does not know. It was written by another one: no bug of this one."""

    def __init__(self, fact: str) -> None:
        super().__init__(f"fact {fact!r:.100} is not known to this version of gpudiag")
        self.fact = fact


def plain(o: Observation) -> dict[str, Any]:
    """`o` as an object for `json.dumps`."""
    row: dict[str, Any] = {"fact": o.fact, "subject": _subject(o.subject), "status": str(o.status)}
    if o.value is not None:
        row["value"] = _value(o.value)
    if o.at is not None:
        row["at"] = o.at
    if o.clock is not Clock.NONE:
        row["clock"] = str(o.clock)
    if o.window is not None:
        row["window"] = list(o.window)
    row["source"] = {
        "probe": o.source.probe,
        "call": o.source.call,
        "line": o.source.line,
        "revision": o.source.revision,
        **({"order": o.source.order} if o.source.order else {}),
    }
    for name in ("excerpt", "detail"):
        if text := getattr(o, name):
            row[name] = text
    if o.origin is not Origin.MEASURED:
        row["origin"] = str(o.origin)
    if o.times != 1:
        row["times"] = o.times
    return row


def restored(row: Any) -> Observation:
    """The opposite of `plain`. ValueError when the object is no observation, UnknownFactError when its fact is not known."""
    try:
        fact = vocabulary().current(str(row["fact"]))
        if fact is None:
            raise UnknownFactError(str(row["fact"]))
        source = row["source"]
        window = row.get("window")
        return Observation(
            fact, _a_subject(row["subject"]), _a_value(row.get("value")), Status(row["status"]),
            Source(str(source["probe"]), str(source["call"]), _number(source["line"]), int(source["revision"]), int(source.get("order", 0))),
            _number(row.get("at")), Clock(row.get("clock", "none")),
            None if window is None else (int(window[0]), int(window[1])),
            str(row.get("excerpt", "")), str(row.get("detail", "")), Origin(row.get("origin", "measured")),
            _number(row.get("times")) or 1,
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as error:
        raise ValueError(f"no observation: {error!r:.100}") from None


def _subject(s: Subject) -> list[list[str]]:
    """From the outermost inwards."""
    return [[str(part.scope), part.id] for part in reversed(list(s.ancestors()))]


def _a_subject(parts: Any) -> Subject:
    made: Subject | None = None
    for scope, name in parts:
        made = Subject(Scope(scope), str(name), made)
    if made is None:
        raise ValueError("no observation: it has no subject")
    return made


def _value(value: Value) -> Any:
    if isinstance(value, Event):
        return {"event": {"code": value.code, **({"fields": dict(value.fields)} if value.fields else {})}}
    if isinstance(value, Series):
        return {"series": {"times": list(value.times), "values": list(value.values)}}
    return list(value) if isinstance(value, tuple) else value


def _a_value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(str(v) for v in value)
    if not isinstance(value, Mapping):
        return _scalar(value)
    if "event" in value:
        fields = value["event"].get("fields", {})
        return Event(_number(value["event"]["code"]), {str(name): _scalar(v) for name, v in fields.items()})
    series = value["series"]
    return Series(tuple(int(t) for t in series["times"]), tuple(float(v) for v in series["values"]))


def _scalar(value: Any) -> Scalar:
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError("value")
    return value


def _number(value: Any) -> int | None:
    return None if value is None else int(value)
