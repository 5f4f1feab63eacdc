"""The loop of `watch`: look, diagnose, update the alerts, keep them, tell; then wait for the clock or the kernel."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from assistant import __version__, machine
from assistant.diagnosis import Diagnosis, diagnose
from assistant.watch.alerts import Alert, Change, Phase, Policy, What, dump, renamed, restore, shifted, step
from assistant.watch.metrics import Snapshot, Totals, WatchCollector, registry
from assistant.watch.notify import Notify
from assistant.watch.pace import Pace
from assistant.watch.rounds import blind, names, sightings
from assistant.watch.state import StateFile, machine_id
from assistant.watch.webhook import Outbox, Target, waiting
from knowledge.observation import Observation, Scope, Status
from knowledge.record import dataclass
from knowledge.text import excerpt
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.watch.follow import Follower
    from assistant.watch.server import Server
    from probes.remote.reach import Reach
    from probes.runner import Progress
    from rules.loader import RuleSet

JUMP = 30.0  # seconds by which the clock may be set before it counts as a jump
LEAVE = 1.2  # seconds that receivers, samples and the history each have at the end
KEEP = 600.0  # seconds between two rounds that go into the history, while nothing changes
AGAIN = 3600.0  # seconds until the same complaint is said again
COMPLAINTS = 100  # that are remembered


class Stopped(Exception):
    """A look was given up, since the watcher is to end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to watch."""

    interval: float = 60.0  # seconds
    wish: machine.Wish = field(default_factory=machine.Wish)
    policy: Policy = field(default_factory=Policy)
    listen: tuple[str, int] | None = None
    token: str = ""  # that opens more than numbers and health there
    targets: tuple[Target, ...] = ()
    state: Path | None = None  # where the alerts are kept
    rounds: int | None = None  # stop after so many; None: never
    expect_gpus: int | None = None
    gap: float = 2.0  # seconds between two rounds at least, however much the kernel says
    other: Reach | None = None  # another machine, that is looked at from here


class Watcher:
    """One machine, this one or another, watched. `say` gets a line for people, `emit` each change as data."""

    def __init__(
        self, settings: Settings, ruleset: RuleSet, plan: Plan, say: Callable[[str], None],
        emit: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """UsageError when another watcher keeps its state in the same folder."""
        self._settings, self._ruleset, self._plan = settings, ruleset, plan
        self._say, self._emit = say, emit
        # Adds what the history knows to a look, with a complaint, if it has one.
        self.recall: Callable[[machine.Look], tuple[machine.Look, str]] | None = None
        # Keeps a round in the history.
        self.remember: Callable[[machine.Look, Diagnosis], None] | None = None
        # Tries once more what the history refused.
        self.again: Callable[[], None] | None = None
        self._wake, self._stopped = Event(), Event()
        self.told_to_stop = False  # and has not ended by itself: somebody waits for the end
        self._lock = Lock()  # guards book, outbox, totals, diagnosis, complaints
        self._saving = Lock()  # what is written later was so later
        self.totals = Totals()
        self._collector = WatchCollector(self.totals)
        own = plan.other.name if plan.other is not None else machine_id(settings.machine.root)
        self._file = StateFile(plan.state, own)
        self._complaints: dict[str, float] = {}
        self._file.lock()
        state, said = self._file.load()
        if said:
            self.complain(said)
        self.book = restore(state.get("book"))
        self._outbox = Outbox(plan.targets, waiting(state.get("outbox")))
        self._diagnosis: Diagnosis | None = None
        self._host = str(state.get("host") or (plan.other.name if plan.other is not None else settings.machine.name))
        self._begun = time.monotonic()
        self._ended: float | None = None  # monotonic end of the newest round that was whole
        self._offset: int | None = None  # realtime less time since boot, ns
        self._notify = Notify(os.environ)
        self._pace = Pace(plan.wish, self._look)
        self._doubt = False  # the next round must ask every probe
        self._earlier: tuple[Observation, ...] = ()  # what the history told last
        self._remembered = float("-inf")  # monotonic time of the last round that it was given

    # --- from outside ---------------------------------------------------------------------

    def wake(self) -> None:
        """The next round is to begin now, and to ask every probe. Safe in any thread and in signal handlers."""
        self._doubt = True
        self._wake.set()

    def stop(self) -> None:
        """End. A look that is under way is given up."""
        self.told_to_stop = True
        self._stopped.set()
        self._wake.set()

    def run(self) -> int:
        """Rounds until stopped. Returns the exit code of the newest diagnosis; 3 when there was none."""
        server = follower = senders = None
        try:
            server = self._serve()
            follower = self._follow() if self._plan.other is None else None
            if self._plan.targets:
                from assistant.watch.sender import Senders

                senders = Senders(self._outbox, self._lock, self._sent)
                senders.start()
            self._rounds()
        finally:
            self._stopped.set()
            self._notify("STOPPING=1")
            if follower is not None:
                follower.close()
            if server is not None:
                server.close()
            if senders is not None:
                senders.close(LEAVE)
            self._save()
            self._file.close()
        return int(self._diagnosis.exit) if self._diagnosis else 3

    def _rounds(self) -> None:
        due, gap = time.monotonic(), self._plan.gap
        while not self._stopped.is_set():
            while (left := due - time.monotonic()) > 0 and not self._wake.is_set():
                self._notify.alive()
                self._wake.wait(min(left, self._notify.every))
            if self._stopped.is_set():
                return
            woken = self._wake.is_set()
            self._wake.clear()
            begun = time.monotonic()
            changed = self._guarded_round()
            self._notify.alive()
            if self._plan.rounds is not None and self.totals.rounds >= self._plan.rounds:
                return
            due = begun + self._plan.interval
            # A kernel that goes on saying what changes nothing is listened to less and less.
            gap = min(gap * 2.0, self._plan.interval) if woken and not changed else self._plan.gap
            self._rest(gap)

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopped.wait(min(left, self._notify.every)):
            self._notify.alive()

    def _guarded_round(self) -> bool:
        """Whether a round changed anything."""
        changes: tuple[Change, ...] = ()
        try:
            changes = self.round()
            self._ended = time.monotonic()
            self._notify("READY=1")
        except Stopped:
            return False
        except Exception as error:  # noqa: BLE001 - a watcher outlives any one round; the failure is counted and said
            self.totals.failed_rounds += 1
            self.complain(f"a check broke: {type(error).__name__}: {excerpt(str(error), 200)}")
        self.totals.rounds += 1
        return bool(changes)

    # --- a round --------------------------------------------------------------------------

    def round(self) -> tuple[Change, ...]:
        """Look once; what changed. Stopped when the watcher is told to end meanwhile."""
        from assistant.sources import told

        begun, full = time.monotonic(), self._doubt
        self._doubt = False
        taken = self._pace.take(full, begun)
        look = taken.look
        look = self._recalled(look, taken.full)
        facts = [*look.observations, *look.earlier, *told(look.host, self._plan.expect_gpus)]
        diagnosis = diagnose(facts, self._ruleset, notes=look.notes, as_of=look.as_of, whole=look.whole, seen="live")
        changes = self._update(look, diagnosis, taken.full)
        self._save()
        for change in changes:
            self._tell(change)
        self._collector.snapshot = self._snapshot(look, diagnosis, time.monotonic() - begun)
        self._notify(f"STATUS={diagnosis.verdict.text.en}")
        if self.remember is not None and look.reached and (changes or begun - self._remembered >= KEEP - 1.0):
            self._remembered = begun
            self.remember(look, diagnosis)
        elif self.again is not None:
            self.again()
        return changes

    def _recalled(self, look: machine.Look, full: bool) -> machine.Look:
        """With what the history knows. A light look goes on with what the last full one was told."""
        if self.recall is None:
            return look
        if full:
            look, why = self.recall(look)
            if why:
                self.complain(why)
            self._earlier = look.earlier
        return replace(look, earlier=self._earlier)

    def _look(self, wish: machine.Wish, options: Mapping[str, Mapping[str, str]]) -> machine.Look:
        other = self._plan.other
        if other is None:
            return machine.here(self._settings, wish, self._while_looking, options)
        from probes.remote import ConnectError

        try:
            return machine.there(self._settings, other, wish, self._while_looking, options)
        except ConnectError as error:  # nothing is known of it now: what was found before is neither confirmed nor gone
            lang = self._settings.output.lang
            self.complain(error.why.in_(lang))
            return machine.unreached(other.name, wish, error.why, lang)

    def _while_looking(self, _: Progress) -> None:
        if self._stopped.is_set():
            raise Stopped
        self._notify.alive()

    def _update(self, look: machine.Look, diagnosis: Diagnosis, full: bool) -> tuple[Change, ...]:
        """The alerts after a look. A light one clears nothing, and where it leaves a doubt the next is full."""
        now = time.time_ns()
        found = sightings(diagnosis, look.boot_id)
        hosts = {self._host: look.host} if self._host and self._host != look.host else {}
        subjects = names(self.book, diagnosis) | {f"node {old}": f"node {new}" for old, new in hosts.items()}
        book = renamed(shifted(self.book, self._jumped(now)), subjects, hosts)
        unseen = blind(book, diagnosis, look.boot_id, now, self._plan.policy)
        missed = book.alerts.keys() - {s.key for s in found}
        if not full:
            unseen |= missed
        book, changes = step(book, found, unseen, now, self._plan.policy)
        doubtful = any(a.phase is not Phase.FIRING for a in book.alerts.values())
        self._doubt |= bool(changes) or doubtful or (not full and bool(missed))
        with self._lock:
            self.book, self._diagnosis, self._host = book, diagnosis, look.host
            self.totals.webhooks_dropped += self._outbox.add(changes, look.host)
            for change in changes:
                self.totals.changes[str(change.what)] = self.totals.changes.get(str(change.what), 0) + 1
        return changes

    def _jumped(self, now: int) -> int:
        """By how much the clock was set since the last round, ns; 0 for what a clock drifts."""
        offset = now - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        by = 0 if self._offset is None else offset - self._offset
        self._offset = offset
        return by if abs(by) > JUMP * 1e9 else 0

    def _tell(self, change: Change) -> None:
        a, s = change.alert, change.alert.last
        lang = self._settings.output.lang
        title = s.title.get(lang) or s.title.get("en", s.rule)
        what = _WORDS[change.what] if lang == "zh" else str(change.what).upper()
        self._say(f"{what} {a.severity} {title} | {s.subject} | {s.rule} -> {s.bucket}")
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
        server = Server(self._plan.listen, registry(self._collector), pages, self._plan.token)
        self._say(f"metrics on {server.url}/metrics")
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
        follower = Follower(triggers, self.wake, self._settings.machine.root)
        follower.start()
        return follower

    def _sent(self, outcome: str, target: Target, why: str) -> None:
        with self._lock:
            self.totals.webhooks_sent += outcome == "sent"
            self.totals.webhooks_failed += outcome == "retried"
            self.totals.webhooks_dropped += outcome == "dropped"
        if outcome != "sent":
            self.complain(f"webhook {target.name}: {why}, message {'dropped' if outcome == 'dropped' else 'kept'}")
        self._save()

    def _save(self) -> None:
        with self._saving:
            with self._lock:
                state = {"host": self._host, "book": dump(self.book), "outbox": self._outbox.dump()}
            why = self._file.save(state)
        if why:
            self.complain(why)

    def complain(self, text: str) -> None:
        """Say it, unless it was said within the hour."""
        now = time.monotonic()
        with self._lock:
            if now - self._complaints.get(text, float("-inf")) < AGAIN:
                return
            self._complaints.pop(text, None)
            self._complaints[text] = now
            while len(self._complaints) > COMPLAINTS:
                del self._complaints[next(iter(self._complaints))]
        self._say(text)


_WORDS = {What.FIRED: "告警", What.ESCALATED: "升级", What.CLEARED: "恢复"}


_STATES = ("ok", "unknown", "degraded", "unhealthy")  # from good to bad
_USABLE = ("yes", "unknown", "impaired", "not_yet", "no")


def _said(diagnosis: Diagnosis, firing: Sequence[Alert]) -> tuple[str, str]:
    """State and usability of the newest round; while alerts are held, no better than these say."""
    states, usables = [str(diagnosis.verdict.state)], [str(diagnosis.verdict.usable)]
    for a in firing:
        serious = a.severity in (Severity.ERROR, Severity.CRITICAL) and a.last.usable != "yes"
        states.append("unhealthy" if serious else "degraded")
        usables += [a.last.usable] if a.last.usable in _USABLE else []
    return max(states, key=_STATES.index), max(usables, key=_USABLE.index)


def _row(a: Alert) -> dict[str, Any]:
    from probes.host import iso

    return {
        "rule": a.last.rule, "xid": a.last.xid, "subject": a.last.subject, "severity": str(a.severity), "phase": str(a.phase),
        "title": dict(a.last.title), "action": a.last.bucket, "first_seen": iso(a.first_seen), "last_seen": iso(a.last_seen),
        "returns": len(a.returns), "evidence": list(a.last.evidence),
    }  # fmt: skip


def _resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)
