"""Our side of an agent in a target: what it is told, how far it is, and what it made.

``Guest(target, items, window)``, ``prepare()``, run ``code`` on the target's main thread (`probes.capture.inject.inject`), ``poll()``
until it is over, ``collect(folder)``, ``clean()``. The agent gives up by itself, and leaves nothing, when it is not polled
for `BEAT` seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from isal import igzip

from knowledge.record import dataclass
from probes.capture import _kept
from probes.capture.agent import PARTS
from probes.capture.guest import _guest_words as words
from probes.capture.guest._guest_folder import Folder
from probes.capture.guest._guest_result import Result, marked
from probes.capture.model import EVENTS, INJECTED, Item, Outcome, Part, Refusal, Target, Window
from probes.capture.whom._room import FOLDERS

BEAT = 5.0  # seconds without a poll after which an agent gives up
STALL_MS = 90  # that one stop of the profiler may take of the job: with an iteration of its own, below 150 ms
SHAPES_STALL_MS = 180  # with shapes, which are asked for and whose cost is told: an event costs twice as much
LINGER = 120.0  # seconds that what was made waits to be collected: other ranks may take longer
PATIENCE = 60.0  # seconds that iterations are waited for
AFTER_MS = 200  # that iterations are counted for when all is over, to tell whether the rate is back
CLEANING = 3.0  # seconds that an agent has to end when it is cleaned away
MOST_TRACE, MOST_RESULT, MOST_STATUS = 1 << 30, 64 << 20, 1 << 16  # bytes
OVER = ("done", "failed", "gone")
THREAD = "gpudiag"  # name of the agent's thread
_PROFILED = frozenset({Item.TORCH, Item.KERNELS, Item.SHAPES, Item.FLOPS})


@dataclass(frozen=True, slots=True)
class GuestState:
    """How far an agent is."""

    phase: str = ""  # "": it has not begun; starting, pilot, waiting, capturing, stopping, writing, done; failed; gone
    code: str = ""  # of a failure: stable
    words: str = ""  # details in English
    events: int = 0  # about so many, so far
    iterations: int = 0
    at: int = 0  # monotonic ns of the last change

    @property
    def over(self) -> bool:
        """Nothing more comes."""
        return self.phase in OVER

    @property
    def refusal(self) -> Refusal | None:
        """Why it failed; None where it did not."""
        return (
            words.refusal(self.code, self.words)
            if self.phase == "failed"
            else words.refusal("gone")
            if self.phase == "gone"
            else None
        )


@cache
def source() -> str:
    """The agent as one text: its modules in order, without what they import of each other."""
    here = Path(__file__).parents[1] / "agent"
    lines = ["from __future__ import annotations"]
    for part in PARTS:
        text = (here / f"{part}.py").read_text(encoding="utf-8").splitlines()
        lines += (line for line in text if not line.startswith(("from probes.", "from __future__")))
    return "\n".join(lines) + "\n"


# What it leaves is garbage of Python; clearing it by hand would pull names from under a hook that just runs.
# Run in a bare thread: on the main thread nothing may be imported, locked or waited for, wherever it stands just now.
_START = """
def go():
    import sys, threading
    with open(FOLDER + "/agent.py", encoding="utf-8") as file:
        text = file.read()
    def work():
        sys.settrace(None)  # of a debugger or coverage, which every new thread gets
        sys.setprofile(None)
        space = {"__name__": "gpudiag_agent"}
        try:
            exec(compile(text, "gpudiag-agent", "exec"), space)
            space["run"](FOLDER, ENABLED)
        except BaseException:
            pass
    threading.Thread(target=work, name=NAME, daemon=True).start()
go()
"""
_INNER = """try:
 with open({start!r}) as f: exec(compile(f.read(), 'gpudiag', 'exec'), {{'FOLDER': {folder!r}, 'NAME': {name!r}, 'ENABLED': ENABLED}})
except Exception: pass"""
_ENABLED = (
    "bool(getattr(getattr(__import__('sys').modules.get('torch'), 'autograd', None), '_profiler_enabled', int)())"
)
_CODE = """try: __import__('_thread').start_new_thread(__import__('builtins').exec, ({inner!r}, {{'ENABLED': {enabled}}}))
except Exception: pass
"""


class Guest:
    """One agent in one target. `start_at`: CLOCK_MONOTONIC ns at which the window begins, the same for all ranks.

    `places`: the folders, as the target sees them, of which one gets what the agent writes.
    """

    def __init__(
        self, target: Target, items: Sequence[Item], window: Window, *, events: int = EVENTS, loss: str = "loss",
        start_at: int | None = None, force: bool = False, everywhere: bool = True, patience: float = PATIENCE, stall_ms: int | None = None,
        linger: float = LINGER, places: Sequence[str] = FOLDERS,
    ) -> None:  # fmt: skip
        self._places = places
        self._target, self._items, self._window = target, tuple(i for i in Item if i in items and i in INJECTED), window
        asked = set(self._items)
        if stall_ms is None:
            stall_ms = SHAPES_STALL_MS if asked & {Item.SHAPES, Item.FLOPS} else STALL_MS
        self._orders: dict[str, Any] = {
            "profile": bool(asked & _PROFILED), "kernels": Item.KERNELS in asked, "shapes": bool(asked & {Item.SHAPES, Item.FLOPS}),
            "memory": Item.MEMORY in asked, "snapshot": Item.MEMORY in asked, "loss": loss if Item.LOSS in asked else "",
            "gradnorm": Item.GRADNORM in asked, "iterations": window.iterations, "skip": window.skip,
            "duration_ns": window.duration_ns, "anchor": window.anchor, "events": events, "stall_ns": stall_ms * 1_000_000,
            "start_at": start_at or 0, "patience_ns": int(patience * 1e9), "after_ns": AFTER_MS * 1_000_000,
            "beat_ns": int(BEAT * 1e9), "linger_ns": int(linger * 1e9), "force": force, "everywhere": everywhere,
        }  # fmt: skip
        self._folder: Folder | None = None
        self._state = GuestState()

    def prepare(self) -> None:
        """Put the agent and its orders into a folder of the target's. OSError when there is no place for it."""
        folder = Folder(self._target.process, places=self._places)
        self._folder = folder
        try:
            folder.put("orders.json", json.dumps(self._orders).encode())
            folder.put("agent.py", source().encode())
            folder.put("start.py", _START.encode())
            folder.hand_over()
        except OSError:
            self.clean()
            raise

    @property
    def code(self) -> str:
        """The statement to run on the target's main thread: it starts a thread and returns. Without effect after `clean`."""
        inside = self.inside
        inner = _INNER.format(start=f"{inside}/start.py", folder=inside, name=THREAD)
        return _CODE.format(inner=inner, enabled=_ENABLED)

    @property
    def inside(self) -> str:
        """The folder, as the target calls it; empty before `prepare`."""
        return self._folder.inside if self._folder is not None else ""

    @property
    def marks(self) -> tuple[str, ...]:
        """By what a descriptor that remains in the target would be known: the folder.

        Not by a thread: profiling leaves one of torch's own, which has the name of the thread that began it.
        """
        return (self.inside,) if self.inside else ()

    def poll(self) -> GuestState:
        """How far it is; tells it that we are still here."""
        folder = self._folder
        if folder is None:
            return self._state
        folder.beat()
        if self._state.over:
            return self._state
        with suppress(OSError, ValueError, TypeError):
            self._state = _state(json.loads(folder.read("status.json", MOST_STATUS)))
        if not self._state.over and (not folder.there or not _alive(self._target)):
            self._state = GuestState(
                "gone", "gone", "", self._state.events, self._state.iterations, time.monotonic_ns()
            )
        return self._state

    def stop(self, *, abandon: bool = False) -> None:
        """Ask for the end now; what was got is written, unless `abandon`."""
        if self._folder is not None:
            with suppress(OSError):
                self._folder.put("stop", b"abandon" if abandon else b"finish")

    def collect(self, folder: Path) -> tuple[list[Part], dict[str, Any] | None, dict[str, Any] | None]:
        """What became of each item, the iterations, and what torch said; traces are moved to `folder`."""
        state = self.poll()
        refusal = state.refusal
        if refusal is not None:
            outcome = Outcome.FAILED if refusal.code in words.ACTIVE else Outcome.REFUSED
            return [Part(i, outcome, why=refusal.why, remedy=refusal.remedy) for i in self._items], None, None
        if state.phase != "done" or self._folder is None:
            return [Part(i, Outcome.TIMEOUT) for i in self._items], None, None
        pid = self._target.process.pid
        try:  # it was written by the target
            result = Result(json.loads(self._folder.read("result.json", MOST_RESULT)), self._orders)
            trace = self._take(result, folder / f"trace-{pid}.json.gz")
            memory = self._copy("memory.pickle", folder / f"memory-{pid}.pickle") if result.snapshot else ""
            return [result.part(i, trace, memory) for i in self._items], result.iterations, result.torch
        except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            why = words.refusal("internal", str(error)).why
            return [Part(i, Outcome.FAILED, why=why) for i in self._items], None, None

    def _take(self, result: Result, to: Path) -> str:
        """The trace, with the iterations marked in it; empty when there is none."""
        if not result.traced or self._folder is None:
            return ""
        try:
            with self._folder.opened("trace.json", MOST_TRACE) as file:
                text = marked(_kept.whole(file, MOST_TRACE), result)
            result.look(text)
            with _kept.created(to) as out:
                out.write(igzip.compress(text, compresslevel=1))
        except (OSError, ValueError) as error:
            to.unlink(missing_ok=True)
            result.lost = str(error)
            return ""
        return to.name

    def _copy(self, name: str, to: Path) -> str:
        assert self._folder is not None
        try:
            with self._folder.opened(name, MOST_RESULT) as file:
                _kept.copy(file, to, MOST_RESULT)
        except OSError:
            return ""
        return to.name

    def clean(self) -> None:
        """Leave nothing in the target's file system; an agent that still runs is ended first. May be called twice."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        if self._state.phase and not self._state.over:
            with suppress(OSError):
                folder.put("stop", b"abandon")
            until = time.monotonic() + CLEANING
            while time.monotonic() < until and _alive(self._target) and folder.there:
                with suppress(OSError, ValueError, TypeError):
                    if _state(json.loads(folder.read("status.json", MOST_STATUS))).over:
                        break
                folder.beat()
                time.sleep(0.02)
        folder.remove()


def _state(told: Any) -> GuestState:
    """From the agent's status, of which nothing is believed but its shape. ValueError or TypeError when it has another."""
    if not isinstance(told, dict) or not isinstance(told.get("phase"), str):
        raise TypeError("no status")
    numbers = [told.get(k) for k in ("events", "iterations", "at")]
    if not all(isinstance(n, int) for n in numbers):
        raise ValueError("no status")
    events, iterations, at = (int(n or 0) for n in numbers)
    return GuestState(
        told["phase"][:40], str(told.get("code", ""))[:40], str(told.get("words", ""))[:2000], events, iterations, at
    )


def _alive(target: Target) -> bool:
    try:
        fields = Path(f"/proc/{target.process.pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[19]) == target.process.start and fields[0] not in ("Z", "X")
