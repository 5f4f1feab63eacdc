"""What a thread does, told by its Python stack, its state in the kernel, and the line that its deepest frame stands on.

The patterns are data (``knowledge/data/activities.yaml``); each stack gets exactly one activity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias

from knowledge.activities import WRAPPER, Activity, Frames, activities
from probes.capture.stacks.source_lines import calls

Frame: TypeAlias = tuple[str, str, int]  # function, file, line


class State(StrEnum):
    """What the kernel says of a thread at one moment."""

    CPU = "cpu"  # running, or ready to
    GIL = "gil"  # blocked on the interpreter's own lock
    LOCK = "lock"  # in futex on anything else
    POLL = "poll"
    SLEEP = "sleep"
    READ = "read"  # in a call that reads or writes
    DISK = "disk"  # state D
    BLOCKED = "blocked"  # in another call
    STOPPED = "stopped"


class Kind(StrEnum):
    """Whose code a frame is."""

    USER = "user"  # the program
    LIBRARY = "library"  # an installed package that no pattern knows
    STDLIB = "stdlib"
    KNOWN = "known"  # by a pattern
    WRAPPER = "wrapper"


class Classified(NamedTuple):
    """What one stack means."""

    activity: str  # id in activities.yaml
    blamed: int  # frame, -1: there is none
    decided: int  # frame that the activity was read from, -1: by the state or for want of anything else


MODULE: Final = "<module>"
_INSTALLED = re.compile(r"^.{0,4000}/(?:site|dist)-packages/(?:[^/]{1,255}\.egg/)?(?P<rest>.+)$", re.DOTALL)
_STDLIB = re.compile(r"^.{0,4000}/(?:lib(?:64)?/(?:python3(?:\.\d{1,3})?t?|pypy3\.\d+)|python3\d+\.zip)/(?P<rest>.+)$", re.DOTALL)  # fmt: skip
_GENERATED = re.compile(r"/torchinductor_[^/]+/|^<eval_with_key>")
_PROGRAM = re.compile(r"^<(?:string|stdin|ipython-input)")  # of what stands in angle brackets: the program's own
_LAUNCHER = re.compile(r"/s?bin/[^/.]+$")  # an installed command
_OFF_CPU: Final = frozenset(State) - {State.CPU}
_BY_STATE: Final = {
    State.READ: "io",
    State.DISK: "io",
    State.LOCK: "sleep",
    State.POLL: "sleep",
    State.SLEEP: "sleep",
    State.BLOCKED: "sleep",
    State.STOPPED: "sleep",
}


class _Known(NamedTuple):
    kind: Kind
    hits: tuple[tuple[Activity, frozenset[str]], ...]  # and what the frame's line has to call, empty: anything


def function(name: str) -> str:
    """A function without its class: py-spy names it with its class from Python 3.11 on."""
    return name if name.endswith(">") else name.rsplit(".", 1)[-1]


@lru_cache(maxsize=65536)
def known(name: str, file: str) -> _Known:
    """Whose code a frame is, and which activities' patterns it fits."""
    where, rest = _place(file)
    plain = function(name)
    hits = tuple((a, f.calls) for a, fits, f in _patterns() if fits(where, rest) and _named(f, plain))
    if any(a.id == WRAPPER for a, _ in hits):
        only = tuple(h for h in hits if h[0].claims in ("all", "quiet"))
        leaf = tuple(h for h in hits if h[0].claims == "leaf")
        return _Known(Kind.KNOWN if only else Kind.WRAPPER, only or leaf)
    if hits:
        return _Known(Kind.KNOWN, hits)
    return _Known({"@": Kind.LIBRARY, "~": Kind.STDLIB}.get(where, Kind.USER), ())


def _place(file: str) -> tuple[str, str]:
    """Where a file belongs: "@" to an installed package, "~" to the standard library, "<" neither, "" to the program."""
    if _GENERATED.search(file):
        return "<", "<generated>"
    if found := _INSTALLED.match(file):
        return "@", found["rest"]
    if found := _STDLIB.match(file):
        return "~", found["rest"]
    if file.startswith("<") and not _PROGRAM.match(file):
        return ("~" if file.startswith("<frozen ") else "@"), file
    if _LAUNCHER.search(file):
        return "@", file
    return "", file


@cache
def _patterns() -> tuple[tuple[Activity, Callable[[str, str], bool], Frames], ...]:
    return tuple((a, _fits(f.files), f) for a in activities().values() for f in a.frames)


def _fits(files: Sequence[str]) -> Callable[[str, str], bool]:
    """Whether a place is one of some files or in one of some folders."""
    whole = {(p[0], p[2:]) for p in files if p[0] in "~@" and not p.endswith("/")}
    below = tuple((p[0], p[2:]) for p in files if p[0] in "~@" and p.endswith("/"))
    bare = tuple(p for p in files if p[0] not in "~@<")
    exact = frozenset(p for p in files if p[0] == "<")
    anywhere = tuple(f"/{p}" for p in bare)

    def fits(where: str, rest: str) -> bool:
        if rest in exact or (where, rest) in whole:
            return True
        if any(where == w and rest.startswith(p) for w, p in below):
            return True
        if where == "@":
            return any(rest.startswith(p) if p.endswith("/") else rest == p for p in bare)
        return where == "" and any(p in rest if p.endswith("/") else rest.endswith(p) for p in anywhere)

    return fits


def _named(frames: Frames, plain: str) -> bool:
    if not frames.functions and not frames.prefixes:
        return True
    return plain in frames.functions or plain.startswith(frames.prefixes or ("\0",))


def classify(frames: Sequence[Frame], state: State | None = None, line: str = "") -> Classified:
    """What a thread with this stack (outermost frame first) does.

    `state`: of the kernel, None when nobody looked; `line`: the source that the deepest frame stands on, "" when it is not known.
    """
    if not frames:
        return Classified("unknown", -1, -1)
    found = [known(name, file) for name, file, _ in frames]
    blamed = _blamed(frames, [f.kind for f in found])
    if state is State.GIL:
        return Classified("gil_wait", blamed, -1)
    best = _best(frames, found, state, calls(line))
    if best is None or best[0].id == "operator":
        by_state = _BY_STATE.get(state) if state else None
        if by_state == "io" or (by_state and best is None):
            return Classified(by_state, blamed, -1)
    if best is None:
        return Classified("python", blamed, -1)
    return Classified(best[0].id, blamed, best[1])


def _best(
    frames: Sequence[Frame], found: Sequence[_Known], state: State | None, called: frozenset[str]
) -> tuple[Activity, int] | None:
    """The activity that has the stack, and the frame that says so."""
    last = len(frames) - 1
    quiet_from = max((i for i, f in enumerate(found) if f.kind is Kind.USER and frames[i][0] != MODULE), default=-1)
    hits: list[tuple[int, int, Activity]] = []
    for at, one in enumerate(found):
        for activity, needs in one.hits:
            claimed = activity.claims == "all" or (activity.claims == "quiet" and at > quiet_from) or at == last
            if claimed and _allowed(activity, state) and (not needs or (at == last and needs & called)):
                hits.append((activity.rank, at, activity))
    if found[last].kind in (Kind.USER, Kind.LIBRARY):
        hits += [
            (a.rank, last, a)
            for a in activities().values()
            if _allowed(a, state) and (a.calls & called or _cast(a, called))
        ]
    top = max(hits, key=lambda h: h[:2], default=None)
    return (top[2], top[1]) if top else None


def _allowed(activity: Activity, state: State | None) -> bool:
    return not activity.blocked or state is None or state in _OFF_CPU


def _cast(activity: Activity, called: frozenset[str]) -> bool:
    """Whether a line turns what mostly lies on the device into a Python number."""
    return bool(activity.casts) and any(
        c.startswith(("float(", "int(", "bool(")) and c[:-1].endswith(activity.casts) for c in called
    )


def _blamed(frames: Sequence[Frame], kinds: Sequence[Kind]) -> int:
    """The deepest frame of the program; where none of it runs, of a library that no pattern knows, then of one that is known, then of a framework
    around it; the standard library last."""
    order = {Kind.USER: 0, Kind.LIBRARY: 1, Kind.KNOWN: 2, Kind.WRAPPER: 3, Kind.STDLIB: 4}
    ranks = [4 if _place(f[1])[0] == "~" else order[k] for k, f in zip(kinds, frames, strict=True)]
    return max(range(len(frames)), key=lambda at: (-ranks[at], at))


def runs_training(frames: Sequence[Frame]) -> bool:
    """Whether a stack is in what only a thread that trains or serves does."""
    return any(
        a.id in ("data_wait", "data_work", "collective", "backward", "optimizer", "operator", "sync")
        for name, file, _ in frames
        for a, _ in known(name, file).hits
    )
