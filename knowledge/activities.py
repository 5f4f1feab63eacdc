"""What a thread does, as the frames of its Python stack tell: the patterns of ``data/activities.yaml``, typed.

`probes.capture.stacks.activity` matches them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from knowledge.compiled import shard
from knowledge.language import Text
from knowledge.record import dataclass

WRAPPER = "wrapper"  # frames that wrap the program and are never blamed


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of some files."""

    files: tuple[str, ...]  # "torch/optim/", "torch/_tensor.py", "~/queue.py" (standard library), "@/PIL/" (installed)
    functions: frozenset[str]  # without their class; empty: all
    prefixes: tuple[str, ...]  # functions that begin so
    calls: frozenset[str]  # the frame's own line has to call one of them; empty: it need not


@dataclass(frozen=True, slots=True)
class Activity:
    """One kind of work or waiting.

    `claims`: "all" that such a frame calls; "quiet": what it calls unless a function of the program runs deeper;
    "leaf": only when it is the deepest frame that is no wrapper; "nothing": a wrapper.
    """

    id: str
    title: Text
    rank: int  # of several that claim a stack the highest has it; of equals the deepest
    claims: str
    blocked: bool  # only while the thread is off the CPU
    frames: tuple[Frames, ...]
    calls: frozenset[str]  # what the deepest frame's line calls, where that has no frame: "time.sleep", ".item"
    casts: tuple[str, ...]  # float(x) of names that end so


def _split(names: list[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    return frozenset(n for n in names if n[-1] != "*"), tuple(n[:-1] for n in names if n[-1] == "*")


@cache
def activities() -> Mapping[str, Activity]:
    """All of them by id, in the order of the file."""
    return {
        e["id"]: Activity(
            e["id"], Text.of(e["title"]), e["rank"], e["claims"], bool(e.get("blocked")),
            tuple(
                Frames(tuple(f["files"]), *_split(f.get("functions") or []), frozenset(f.get("calls") or ()))
                for f in e.get("frames") or ()
            ),
            frozenset(e.get("calls") or ()), tuple(e.get("casts") or ()),
        )
        for e in shard("activities")
    }  # fmt: skip
