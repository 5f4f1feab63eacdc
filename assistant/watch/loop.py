"""The loop of `watch`: look, diagnose, update the alerts, keep them, tell; then wait for the clock or the kernel."""

from __future__ import annotations

import json
import os
import resource
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from assistant import __version__, machine
from assistant.diagnosis import Diagnosis, diagnose
from assistant.watch.alerts import Alert, Change, Policy, dump, restore, step
from assistant.watch.metrics import Snapshot, Totals, WatchCollector, registry
from assistant.watch.rounds import blind, sightings
from assistant.watch.webhook import Outbox, Target, waiting
from knowledge.observation import Scope, Status
from knowledge.text import excerpt

if TYPE_CHECKING:
    import httpx

    from assistant.config import Settings
    from assistant.watch.follow import Follower
    from assistant.watch.server import Server
    from rules.loader import RuleSet

GAP = 2.0  # seconds between two rounds, however much the kernel says
STATE_SCHEMA = "gpudiag/watch/1"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to watch."""

    interval: float = 60.0  # seconds
    wish: machine.Wish = field(default_factory=machine.Wish)
    policy: Policy = field(default_factory=Policy)
    listen: tuple[str, int] | None = None
    targets: tuple[Target, ...] = ()
    state: Path | None = None  # where the alerts are kept
    rounds: int | None = None  # stop after so many; None: never
    expect_gpus: int | None = None


class Watcher:
    """One machine, watched. `say` gets a line for people, `emit` each change as data."""

    def __init__(
        self, settings: Settings, ruleset: RuleSet, plan: Plan, say: Callable[[str], None],
        emit: Callable[[Mapping[str, Any]], None] = lambda _: None,
        remember: Callable[[machine.Look, Diagnosis], str | None] | None = None,
    ) -> None:  # fmt: skip
        """`remember` writes a round to the history and returns a complaint, if it has one."""
        self._settings, self._ruleset, self._plan = settings, ruleset, plan
        self._say, self._emit, self._remember = say, emit, remember
        self._wake, self._stopped, self._lock = Event(), Event(), Lock()
        self.totals = Totals()
        self._collector = WatchCollector(self.totals)
        state = _load(plan.state)
        self.book = restore(state.get("book"))
        self._outbox = Outbox(plan.targets, waiting(state.get("outbox")))
        self._diagnosis: Diagnosis | None = None
        self._host = settings.machine.name
        self._begun = time.monotonic()
        self._ended: float | None = None  # monotonic end of the newest round
        self._complaints: set[str] = set()
        self._notify = _Notify(os.environ.get("NOTIFY_SOCKET", ""))

    # --- from outside ---------------------------------------------------------------------

    def wake(self) -> None:
        """The next round is to begin now. Safe in any thread and in signal handlers."""
        self._wake.set()

    def stop(self) -> None:
        """End after the round that is under way."""
        self._stopped.set()
        self._wake.set()

    def run(self) -> int:
        """Rounds until stopped. Returns the exit code of the newest diagnosis."""
        server = self._serve()
        follower = self._follow()
        sender = Thread(target=self._send, name="webhooks", daemon=True)
        if self._plan.targets:
            sender.start()
        try:
            self._rounds()
        finally:
            self._stopped.set()
            follower.close()
            if server is not None:
                server.close()
            if sender.is_alive():
                sender.join(12.0)
            self._save()
            self._notify("STOPPING=1")
        return int(self._diagnosis.exit) if self._diagnosis else 3

    def _rounds(self) -> None:
        due = time.monotonic()
        while not self._stopped.is_set():
            while (left := due - time.monotonic()) > 0 and not self._wake.is_set():
                self._notify("WATCHDOG=1")
                self._wake.wait(min(left, 15.0))
            if self._stopped.is_set():
                return
            self._wake.clear()
            begun = time.monotonic()
            self._guarded_round()
            self._ended = time.monotonic()
            self._notify("READY=1")
            self._notify("WATCHDOG=1")
            if self._plan.rounds is not None and self.totals.rounds >= self._plan.rounds:
                return
            due = begun + self._plan.interval
            self._stopped.wait(GAP)

    def _guarded_round(self) -> None:
        try:
            self.round()
        except Exception as error:  # noqa: BLE001 - a watcher outlives any one round; the failure is counted and said
            self.totals.failed_rounds += 1
            self._complain(f"a check broke: {type(error).__name__}: {excerpt(str(error), 200)}")
        self.totals.rounds += 1

    # --- a round --------------------------------------------------------------------------

    def round(self) -> tuple[Change, ...]:
        """Look once; what changed."""
        from assistant.sources import told

        begun, now = time.monotonic(), time.time_ns()
        look = machine.here(self._settings, self._plan.wish)
        facts = [*look.observations, *told(look.host, self._plan.expect_gpus)]
        diagnosis = diagnose(facts, self._ruleset, notes=look.notes, as_of=look.as_of, whole=look.whole)
        book, changes = step(self.book, sightings(diagnosis), blind(self.book, diagnosis), now, self._plan.policy)
        with self._lock:
            self.book, self._diagnosis, self._host = book, diagnosis, look.host
            self._outbox.add(changes, look.host)
        for change in changes:
            self.totals.changes[str(change.what)] = self.totals.changes.get(str(change.what), 0) + 1
            self._tell(change)
        self._save()
        self._collector.snapshot = self._snapshot(look, diagnosis, time.monotonic() - begun)
        self._notify(f"STATUS={diagnosis.verdict.text.en}")
        if self._remember is not None and (complaint := self._remember(look, diagnosis)):
            self._complain(complaint)
        return changes

    def _tell(self, change: Change) -> None:
        a, s = change.alert, change.alert.last
        lang = self._settings.output.lang
        title = s.title.get(lang) or s.title.get("en", s.rule)
        self._say(f"{str(change.what).upper()} {a.severity} {title} | {s.subject} | {s.rule} -> {s.bucket}")
        from assistant.watch.webhook import payload

        self._emit(payload(change, self._host))

    def _snapshot(self, look: machine.Look, diagnosis: Diagnosis, seconds: float) -> Snapshot:
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        state, usable = _said(diagnosis, self.book.firing)
        return Snapshot(
            host=look.host, version=__version__, rules=len(self._ruleset.rules), state=state, usable=usable,
            ended=time.time(), seconds=seconds, cpu_seconds=own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
            resident=_resident(), alerts=tuple(self.book.alerts.values()),
            probes=tuple((r.probe, r.status is Status.OK, r.seconds or 0.0) for r in look.results),
            undecided=len(diagnosis.undecided), gpus=len(diagnosis.facts.subjects(Scope.GPU)), interval=self._plan.interval,
        )  # fmt: skip

    # --- endpoints ------------------------------------------------------------------------

    def _serve(self) -> Server | None:
        if self._plan.listen is None:
            return None
        from assistant.watch.server import Server

        pages = {"/healthz": self._health, "/readyz": self._ready, "/alerts": self._alerts, "/diagnosis": self._answer}
        server = Server(self._plan.listen, registry(self._collector), pages)
        self._say(f"metrics on http://{self._plan.listen[0]}:{server.port}/metrics")
        return server

    def _health(self) -> tuple[int, Any]:
        """Alive: a round ended not longer ago than three intervals and the time that probes may take."""
        since = time.monotonic() - (self._begun if self._ended is None else self._ended)
        limit = 3 * self._plan.interval + 2 * self._plan.wish.budget
        alive = since <= limit
        return 200 if alive else 503, {"alive": alive, "seconds_since_check": round(since, 1), "limit": limit}

    def _ready(self) -> tuple[int, Any]:
        ready = self._ended is not None
        return 200 if ready else 503, {"ready": ready}

    def _alerts(self) -> tuple[int, Any]:
        with self._lock:
            return 200, {
                "schema": "gpudiag/alerts/1",
                "host": self._host,
                "alerts": [_row(a) for a in self.book.firing],
            }

    def _answer(self) -> tuple[int, Any]:
        from assistant.render.json_ import plain

        with self._lock:
            diagnosis = self._diagnosis
        if diagnosis is None:
            return 503, {"error": "no check has ended yet"}
        return 200, plain(diagnosis, self._settings.output.lang)

    # --- the kernel, webhooks, the disk ---------------------------------------------------

    def _follow(self) -> Follower:
        from assistant.formats import log_formats
        from assistant.watch.follow import Follower

        triggers = [t for f in log_formats() if f.name == "kernel-log" for t in f.triggers]
        follower = Follower(triggers, self.wake)
        follower.start()
        return follower

    def _send(self) -> None:
        import httpx

        with httpx.Client(timeout=10.0, follow_redirects=False) as client:
            while not self._stopped.wait(1.0):
                self._deliver(client)
            self._deliver(client)  # what the last round had to say

    def _deliver(self, client: httpx.Client) -> None:
        with self._lock:
            if not self._outbox.waiting:
                return
            outbox = Outbox(self._plan.targets, self._outbox.waiting)
        taken = {m.id for m in outbox.waiting}
        outcomes = outbox.deliver(lambda url, body, headers: _post(client, url, body, headers), time.time_ns())
        with self._lock:  # what a round added meanwhile stays behind what was there
            self._outbox.waiting = [*outbox.waiting, *(m for m in self._outbox.waiting if m.id not in taken)]
        for outcome, target, why in outcomes:
            self.totals.webhooks_sent += outcome == "sent"
            self.totals.webhooks_failed += outcome == "retried"
            self.totals.webhooks_dropped += outcome == "dropped"
            if outcome != "sent":
                self._complain(f"webhook {target.name}: {why}, message {'dropped' if outcome == 'dropped' else 'kept'}")
        if outcomes:
            self._save()

    def _save(self) -> None:
        if self._plan.state is None:
            return
        with self._lock:
            state = {"schema": STATE_SCHEMA, "book": dump(self.book), "outbox": self._outbox.dump()}
        try:
            _write(self._plan.state, json.dumps(state))
        except OSError as error:
            self._complain(
                f"{self._plan.state} cannot be written: {error.strerror}; alerts are not kept over a restart"
            )

    def _complain(self, text: str) -> None:
        """Say it once, and again only after something else was said."""
        if text not in self._complaints:
            self._complaints = {text, *list(self._complaints)[-20:]}
            self._say(text)


def _said(diagnosis: Diagnosis, firing: Sequence[Alert]) -> tuple[str, str]:
    """State and usability of the newest round; while an alert is held, no better than it was."""
    state, usable = str(diagnosis.verdict.state), str(diagnosis.verdict.usable)
    if state in ("ok", "unknown") and firing:
        worst = max(firing, key=lambda a: a.severity.rank)
        held = "unhealthy" if worst.severity.rank >= 2 and worst.last.usable != "yes" else "degraded"  # error and above
        return held, worst.last.usable or usable
    return state, usable


def _row(a: Alert) -> dict[str, Any]:
    from probes.bundle import iso

    return {
        "rule": a.last.rule, "xid": a.last.xid, "subject": a.last.subject, "severity": str(a.severity), "phase": str(a.phase),
        "title": dict(a.last.title), "action": a.last.bucket, "first_seen": iso(a.first_seen), "last_seen": iso(a.last_seen),
        "returns": len(a.returns), "evidence": list(a.last.evidence),
    }  # fmt: skip


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def _post(client: httpx.Client, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, float | None]:
    """HTTP status, 0 when there was no answer; and the pause that the receiver asked for, seconds."""
    import httpx

    try:
        answer = client.post(url, content=body, headers=dict(headers))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return 0, None
    pause = answer.headers.get("Retry-After", "")
    return answer.status_code, float(pause) if pause.isdigit() else None


def _load(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) and data.get("schema") == STATE_SCHEMA else {}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


class _Notify:
    """Messages to systemd (sd_notify(3)); nothing when it does not listen."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def __call__(self, text: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.sendto(text.replace("\n", " ").encode(), self._address)
