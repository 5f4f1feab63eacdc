"""What a GPU is at while somebody reads its counters: ``data/workloads.yaml``, typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from knowledge.compiled import shard
from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass

GENERAL = {"inference": "decode"}  # where nothing is said of the one, what is said of the other holds


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of work, or a phase of a job."""

    id: str
    title: Text
    said: tuple[str, ...]
    quiet: Text = NO_TEXT  # why a GPU is idle there although all is well; empty where it is not


@cache
def workloads() -> Mapping[str, Workload]:
    """All by id, in the order of the file. FaultsError when the data has faults."""
    return {
        d["id"]: Workload(d["id"], Text.of(d["title"]), (*d["said"]["en"], *d["said"]["zh"]), Text.of(d.get("quiet")))
        for d in shard("workloads")
    }


def named(text: str) -> tuple[Workload, ...]:
    """The kinds of work that a sentence names, in the order of the file."""
    plain = text.casefold()
    return tuple(w for w in workloads().values() if any(_stands(s.casefold(), plain) for s in w.said))


def _stands(name: str, plain: str) -> bool:
    """Whether a name stands in a text, of Latin letters as words of their own."""
    if name not in plain or not name.isascii():  # a page was pasted: few names stand in it at all
        return name in plain
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", plain) is not None
