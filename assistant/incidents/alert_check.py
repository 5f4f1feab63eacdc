"""gpudiag's own look at the node of an alert, so that an incident has a cause and not only an alert.

One node at a time, none twice within a quarter of an hour, each in a process of its own with a deadline: a node that hangs
holds up neither the messages nor the other nodes for longer. What was found becomes events of the incident.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from assistant.incidents.events import SEVERITIES, Entry, Hand, Kind
from assistant.store.location import StoreError
from knowledge.errors import GpudiagError, UnknownNameError
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.incidents.book import Book
    from assistant.incidents.fold import Incident

HAND = Hand("gpudiag", "webhook")
EVERY = 900.0  # seconds for which a look at a node is fresh: it costs the node a second of many tools
DEADLINE = 120.0  # seconds for one: four times what its probes may take
QUEUE = 64  # nodes that wait: what a group of a whole row of racks names
Job = tuple[int, str, bool]  # incident, node, whether it is another machine than this


class Checker:
    """Looks at nodes in a thread of its own. `told` hears what came of it."""

    def __init__(
        self, book: Book, told: Callable[[Text], None], words: Sequence[str] = (), every: float = EVERY,
        environ: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`words`: more options for each check."""
        self._book, self._told, self._words, self._every = book, told, tuple(words), every
        self._environ = environ
        self._queue: Queue[Job] = Queue(QUEUE)
        self._looked: dict[str, tuple[float, int]] = {}  # node -> when it was asked for, and by which incident
        self._stop = Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._run, name="check", daemon=True)
        self._thread.start()

    def ask(self, number: int, host: str, far: bool) -> bool:
        """Have a node looked at for an incident. False where it was a moment ago, or too many wait."""
        now = time.monotonic()
        self._looked = {h: seen for h, seen in self._looked.items() if now - seen[0] < self._every}
        if host in self._looked:
            other = self._looked[host][1]
            if other != number:
                self._add(number, [Entry(Kind.PROBE, {"name": "check", "host": host, "see": other})])
            return False
        try:
            self._queue.put_nowait((number, host, far))
        except Full:
            self._told(Text(f"{host} is not checked: {QUEUE} nodes wait", f"未检查 {host}：已有 {QUEUE} 个节点在等待"))
            return False
        self._looked[host] = (now, number)
        return True

    def close(self, seconds: float) -> None:
        """End; what is under way is cut off."""
        self._stop.set()
        self._kill()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            with suppress(Empty):
                self._look(*self._queue.get(timeout=0.5))

    def _look(self, number: int, host: str, far: bool) -> None:
        entries, why = self._answered(["--host", host] if far else [])
        if self._stop.is_set():
            return
        if why:
            entries = [Entry(Kind.PROBE, {"name": "check", "host": host, "text": excerpt(why, 300)})]
            self._told(
                Text(f"incident {number}: {host} could not be checked: {why}", f"事件 {number}：无法检查 {host}：{why}")
            )
        elif self._add(number, entries):
            self._told(Text(f"incident {number}: {host} was checked", f"事件 {number}：已检查 {host}"))
            return
        self._add(number, entries)

    def _answered(self, words: Sequence[str]) -> tuple[list[Entry], str]:
        """The events of a check, or why there are none."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
        argv = [sys.executable, "-P", "-c", code]
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            env=self._environ,
        ) as child:  # fmt: skip
            self._child = child
            try:
                out, _ = child.communicate(json.dumps([*words, *self._words]).encode(), DEADLINE)
            except subprocess.TimeoutExpired:
                self._kill()
                return [], f"no answer within {DEADLINE:.0f} s"
            finally:
                self._child = None
        try:
            said = json.loads(out)
            return [Entry(str(kind), data) for kind, data in said["entries"]], str(said["trouble"])
        except (ValueError, KeyError, TypeError):
            return [], f"the check ended with code {child.returncode}"

    def _kill(self) -> None:
        child = self._child
        if child is not None:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)

    def _add(self, number: int, entries: Sequence[Entry]) -> bool:
        try:
            self._book.change(number, HAND, lambda incident: attached(entries, incident))
        except (StoreError, UnknownNameError) as error:
            why = error.said if isinstance(error, StoreError) else Text(str(error))
            self._told(why)
            return False
        return True


def attached(entries: Sequence[Entry], incident: Incident) -> list[Entry]:
    """What a check adds: all of it, and a worse severity unless a person said which it is. A closed incident is left alone."""
    if not incident.is_open:
        return []
    out = list(entries)
    by_hand = any(e.kind == Kind.SEVERITY and e.surface != HAND.surface for e in incident.events)
    ranks = [
        SEVERITIES.index(s) for e in entries if e.kind == Kind.FINDING and (s := e.data.get("severity")) in SEVERITIES
    ]
    now = SEVERITIES.index(incident.severity) if incident.severity in SEVERITIES else -1
    if not by_hand and max(ranks, default=-1) > now:
        out.append(Entry(Kind.SEVERITY, {"severity": SEVERITIES[max(ranks)]}))
    return out


# --- the child ----------------------------------------------------------------------------


def main() -> None:
    """Check what the options on standard input name, and print the events."""
    words = json.loads(sys.stdin.buffer.read())
    try:
        entries, trouble = _checked(words), ""
    except GpudiagError as error:
        entries, trouble = [], error.message
    print(json.dumps({"entries": [[str(e.kind), dict(e.data)] for e in entries], "trouble": trouble}))


def _checked(words: Sequence[str]) -> list[Entry]:
    """The verdict, and the findings that ask for an incident."""
    from assistant.arguments import command_parser
    from assistant.cli import load
    from assistant.commands.check import diagnosed
    from assistant.config import load as settings
    from assistant.incidents.opening import from_diagnosis
    from knowledge.errors import UsageError

    args = command_parser(load("check")).parse_args(["--quiet", *words])
    args.settings = settings({"format": args.format, "lang": args.lang, "color": args.color})
    found = diagnosed(args)
    host = found.look.host if found.look is not None else args.host
    verdict = found.diagnosis.verdict
    about: dict[str, Any] = {
        "name": "check", "host": host, "as_of": found.diagnosis.as_of, "ruleset": found.diagnosis.ruleset,
        "verdict": {"state": str(verdict.state), "usable": str(verdict.usable), "en": verdict.text.en, "zh": verdict.text.zh},
    }  # fmt: skip
    try:
        opened, *rest = from_diagnosis(found.diagnosis, host)
    except UsageError:  # nothing that asks for an incident
        return [Entry(Kind.PROBE, about)]
    told = {name: opened.data[name] for name in ("gpus", "coverage") if name in opened.data}
    return [Entry(Kind.PROBE, {**about, **told}), *rest]
