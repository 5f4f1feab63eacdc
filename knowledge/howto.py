"""Tasks: how to set, read, reset or collect something, with the commands and what they can cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass
from knowledge.runbook import Risk

_ORDER = tuple(Risk)  # from least to worst


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. `command` is empty where no command does it; it may hold placeholders of runbooks."""

    do: Text
    command: str = ""
    risk: Risk = Risk.SAFE
    note: Text = NO_TEXT


class Does(NamedTuple):
    """What a task does to what: ids of any of its verbs, and of all of its things."""

    verbs: tuple[str, ...]
    things: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Howto:
    """One task."""

    id: str
    title: Text
    about: Text  # the answer in one sentence
    steps: tuple[Step, ...]
    ask: tuple[str, ...]  # phrases, both languages
    does: tuple[Does, ...] = ()
    verify: Text = NO_TEXT  # what is seen when it worked
    verify_command: str = ""
    runbook: str = ""  # id of the full procedure
    sources: tuple[str, ...] = ()

    @property
    def risk(self) -> Risk:
        """The worst risk of any step."""
        return max((s.risk for s in self.steps), key=_ORDER.index)


@cache
def howtos() -> Mapping[str, Howto]:
    """All tasks by id. FaultsError when the data has faults."""
    return {d["id"]: _of(d) for d in shard("howto")}


def spoken(kind: str) -> Iterator[tuple[str, str]]:
    """Words of ``data/tasks.yaml`` and the id of the `kind` ("verb", "thing" or "ask") that they mean."""
    for e in shard("tasks"):
        if e["kind"] == kind:
            yield from ((said, e["id"]) for lang in ("en", "zh") for said in e["said"][lang])


def _of(d: Mapping[str, Any]) -> Howto:
    verify = d.get("verify") or {}
    return Howto(
        id=d["id"], title=Text.of(d["title"]), about=Text.of(d["about"]),
        steps=tuple(
            Step(Text.of(s["do"]), s.get("command") or "", Risk(s.get("risk", "safe")), Text.of(s.get("note"))) for s in d["steps"]
        ),
        ask=(*d["ask"]["en"], *d["ask"]["zh"]), does=tuple(Does(tuple(x["verb"]), tuple(x["thing"])) for x in d.get("does", ())),
        verify=Text.of(verify.get("see")), verify_command=verify.get("command") or "",
        runbook=d.get("runbook", ""), sources=tuple(d["sources"]),
    )  # fmt: skip
