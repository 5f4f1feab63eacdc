"""One capture: everything side by side over one window, in one time base, and nothing left behind.

    look      vital signs of each target, before
    listen    stacks (py-spy), threads and devices (/proc, NVML) from outside, by children of ours
    ask       what was agreed to, from inside: a guest in each target, begun at one moment across ranks
    hang      a target that stands still is not asked: two looks at all stacks instead
    leave     collect, clear away, vital signs again; traces are read when nothing of ours runs any more

Whatever happens on the way, also Ctrl-C, children and guests end, and what was got by then is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

from knowledge.language import Text
from knowledge.observation_json import plain
from probes.capture import inside, manifest
from probes.capture.model import INJECTED, SCHEMA, Aftermath, Item, Outcome, Part, Refusal, Rung, Target, Vital, Window
from probes.capture.plan import TRACED, Plan, Planned, Survey
from probes.capture.readings import timebase

STILL: Final = 0.6  # seconds in which a job that works uses the CPU, or its main thread is switched
HANG_WINDOW: Final = 1.2  # seconds that a job that stands still is listened to
_SIDE_BY_SIDE: Final = 16
_LOOK: Final = 0.2  # seconds between looks at whether the targets are still there
Say = Callable[[str], None]


def survey(
    targets: Sequence[Target], items: Iterable[Item], window: Window | None = None, *, force: bool = False
) -> dict[int, Survey]:
    """What can be done to each target and what not, by pid. Nothing is touched."""
    from probes.capture.whom import preflight

    wanted, span = frozenset(items), window or Window()
    out = {}
    for target in targets:
        refused = preflight.check(target, wanted, force=force)
        asked = bool(wanted & INJECTED) or span.by_iterations
        out[target.process.pid] = Survey(refused, *(_ways(target, wanted, span, force=force) if asked else ()))
    return out


def _ways(
    target: Target, wanted: frozenset[Item], window: Window, *, force: bool
) -> tuple[tuple[Rung, ...] | Refusal, tuple[Rung, ...]]:
    """How a call can be made in a target, and how a trace can be had without one."""
    from probes.capture.inject import inject
    from probes.capture.serve import served

    return inject.able(target.process, force=force), served.ways(target, window) if wanted & TRACED else ()


def capture(
    plan: Plan, folder: Path, *, progress: Say = lambda _: None, cancel: Event | None = None, host: str = "", version: str = "",
    leaving: Callable[[], None] = lambda: None,
) -> dict[str, Any]:  # fmt: skip
    """Captures as planned and writes ``capture.json`` into `folder`; the document. OSError when that cannot be written.

    `cancel` ends it early: what was got by then is in the document. `leaving` is called when the window is over and nothing
    of ours runs in or beside the targets any more.
    """
    one = _Capture(plan, folder, progress, cancel or Event(), host)
    try:
        one.run()
    finally:
        one.end()
    leaving()
    return manifest.read(manifest.write(folder, one.document(version)))  # as everybody else will read it


def named(plan: Plan, at: float | None = None) -> str:
    """What a capture is called: when, and of whom."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    pids = [p.target.process.pid for p in plan.targets]
    return f"{moment:%Y%m%dT%H%M%S}-{pids[0] if pids else 0}"


class _Capture:
    """What is known while it runs."""

    def __init__(self, plan: Plan, folder: Path, say: Say, cancel: Event, host: str) -> None:
        from probes.capture.gentle import Gentle

        self.plan, self.folder, self.say, self.cancel, self.host = plan, folder, say, cancel, host
        self.gentle = Gentle(plan)
        self.clocks = [asdict(timebase.pair())]
        self.began = self.ended = self.clocks[0]["monotonic"]
        self.before: dict[int, Vital] = {}
        self.after: dict[int, Aftermath] = {}
        self.guests: list[inside.Inside] = []
        self.hang: dict[str, Any] | None = None
        self.inner: tuple[int, int] | None = None  # from the calls to the end of the last guest
        self.still = False
        self.from_servers: dict[int, list[Part]] = {}
        self.notes: list[Text] = []
        self.collected = False

    # --- the way through ----------------------------------------------------------------------

    def run(self) -> None:
        """Look, listen, ask, leave."""
        from probes.capture.whom import aftermath

        self.before = {p.target.process.pid: aftermath.vital(p.target.process) for p in self.plan.targets}
        self.say("listening")
        self.gentle.start()
        self.began = time.monotonic_ns()
        if self.plan.wish.hang:
            self._hangs()
            self._stay_out()
            return
        if self._stands_still() and self._hangs():
            self._stay_out()
            return
        before = self._places() if self.plan.injects else {}
        if any(p.gentle for p in self.plan.targets) or not self.plan.injects:
            self._listen()
        if not self.plan.injects or self.cancel.is_set():
            return
        # what uses the CPU and yet stays where it was may be in a wait of NCCL
        if before and before == self._places() and self._hangs():
            self._stay_out()
        else:
            self._ask()

    def _places(self) -> dict[int, tuple[Any, ...]]:
        """Where the main thread of each target stands now; nothing when that is not to be seen of one."""
        from probes.capture.stacks import stacks

        pids = [p.target.process.pid for p in self.plan.targets]
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            dumps = dict(zip(pids, pool.map(stacks.dump, pids), strict=True))
        main = {
            pid: next((t["frames"] for t in found["threads"] if t["tid"] == pid), None) for pid, found in dumps.items()
        }
        return {pid: tuple(map(tuple, frames)) for pid, frames in main.items() if frames} if all(main.values()) else {}

    def _listen(self) -> None:
        """The window passes, undisturbed: what runs inside afterwards would be seen in the stacks."""
        if not self.plan.items:  # everything was refused: nobody is made to wait for nothing
            self.ended = time.monotonic_ns()
            return
        left = self.plan.window.duration_ns / 1e9 - (time.monotonic_ns() - self.began) / 1e9
        self.say(f"listening for {self.plan.window.duration_ns / 1e9:.1f} s")
        until = time.monotonic() + left
        while (left := until - time.monotonic()) > 0 and not self.cancel.wait(min(left, _LOOK)) and self._any_there():
            pass
        self.ended = time.monotonic_ns()

    def _any_there(self) -> bool:
        """Whether one of the targets still runs: of those that ended there is no more to see, and their shares are of their time."""
        from probes.capture.whom import identity

        return any(identity.lives(p.target.process) for p in self.plan.targets)

    def _ask(self) -> None:
        """Guests in all targets, begun at one moment. The samplers go on beside them, in the same time base."""
        at = time.monotonic_ns()
        lead = inside.LEAD if sum(map(self.plan.inject, self.plan.targets)) > 1 else 0.0  # one alone waits for nobody
        start = at + round(lead * 1e9) if lead else None
        served = [p for p in self.plan.targets if p.server is not None]
        with ThreadPoolExecutor(max(1, len(served))) as pool:
            asked = {p.target.process.pid: pool.submit(self._served, p) for p in served}
            self.guests = inside.enter(self.plan, start, say=self.say, cancel=self.cancel)
            inside.wait(self.guests, self.plan.window, say=self.say, cancel=self.cancel)
            if asked:
                self.say("waiting for the trace that the job writes itself")
            self.from_servers = {pid: one.result() for pid, one in asked.items()}
        self.inner = (at, time.monotonic_ns())
        if any(g.stuck for g in self.guests) and not any(g.entered for g in self.guests) and self._hangs():
            self._stay_out()

    def _served(self, planned: Planned) -> list[Part]:
        """What comes without a call in the target."""
        from probes.capture.serve import served

        assert planned.server is not None
        return served.capture(
            planned.target, planned.from_server, planned.server, self.plan.window, self.folder, stop=self.cancel
        )

    # --- hangs ---------------------------------------------------------------------------------

    def _stands_still(self) -> bool:
        """Whether no target used the CPU, nor was its main thread switched, for a moment."""
        from probes.capture.whom import aftermath

        left = STILL - (time.monotonic_ns() - self.began) / 1e9
        if self.cancel.wait(max(0.05, min(STILL, left))):
            return False
        for planned in self.plan.targets:
            old, now = self.before.get(planned.target.process.pid), aftermath.vital(planned.target.process)
            if old is None or not now.alive or now.cpu_ticks - old.cpu_ticks > 1 or now.switches - old.switches > 2:
                return False
        return bool(self.plan.targets)

    def _hangs(self) -> bool:
        """Two looks at all stacks of what stands still, and whether it hangs: a job may as well sleep, or wait for its data."""
        from probes.capture.hang import flight_files, hang, standing, standing_job

        self.say("it stands still: looking at all stacks twice")
        targets = [p.target for p in self.plan.targets]
        # NCCL's recorder writes its dump when it is asked through its pipe: that needs consent as anything that the job does for us
        flight = flight_files.gather(targets, ask=self.plan.wish.agreed or self.plan.injects)
        self.hang = hang.look(targets, flight=flight)
        found = standing_job.jobs(self.hang, standing.members(self.hang.get("targets")))
        return any(job.hung is not False for job in found)

    def _stay_out(self) -> None:
        """Nothing is injected into a job that hangs."""
        self.still = True
        if self.plan.injects and not self.plan.wish.hang:
            self.notes.append(Text("Nothing moved, so nothing was injected: stacks were read twice instead.",
                                   "没有任何进展，因此未注入任何内容，而是读取了两次调用栈。"))  # fmt: skip
        if self.ended > self.began:  # it was listened to before
            return
        left = HANG_WINDOW - (time.monotonic_ns() - self.began) / 1e9
        self.cancel.wait(max(0.0, left))
        self.ended = time.monotonic_ns()

    # --- the end -------------------------------------------------------------------------------

    def end(self) -> None:
        """Everything of ours ends; what was got is taken. Also after a fault."""
        if self.collected:
            return
        self.collected = True
        self.say("collecting")
        if self.ended <= self.began:
            self.ended = time.monotonic_ns()
        try:
            self.gentle.stop()
        finally:
            inside.collect(self.guests, self.folder)
            self.clocks.append(asdict(timebase.pair()))
        pids = [p.target.process.pid for p in self.plan.targets if Item.STACKS in p.gentle]
        if (
            self.hang is None
            and pids
            and not self.cancel.is_set()
            and all(self.gentle.frozen(pid, self.began) for pid in pids)
        ):
            self._hangs()  # it used the CPU and yet never left its place
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            found = pool.map(self._settled, self.plan.targets)
            self.after = {
                p.target.process.pid: a for p, a in zip(self.plan.targets, found, strict=True) if a is not None
            }

    def _settled(self, planned: Planned) -> Aftermath | None:
        """How a target stands now, against before."""
        from probes.capture.whom import aftermath

        process = planned.target.process
        before = self.before.get(process.pid)
        if before is None:
            return None
        guest = next((g for g in self.guests if g.planned is planned), None)
        entered = guest is not None and guest.entered
        spans = inside.spans(guest)
        found = aftermath.settle(
            process, before, injected=entered, marks=guest.marks if guest is not None else (), iteration_before_ns=spans.before,
            iteration_after_ns=spans.after, longest_ns=spans.longest,
        )  # fmt: skip
        # nothing of ours was ever in it: what it opened, started and took meanwhile is its own
        return found if guest is not None else replace(found, left=())

    # --- the document ----------------------------------------------------------------------------

    def document(self, version: str = "") -> dict[str, Any]:
        """``gpudiag/capture/1``."""
        first = self.clocks[0]
        out: dict[str, Any] = {
            "schema": SCHEMA, "id": self.folder.name, "host": self.host, "boot_id": _boot_id(), "version": version,
            "as_of": first["realtime"] + self.began - first["monotonic"], "clocks": self.clocks,
            "window": manifest.plain_window(self.plan.window, self.began, self.ended), "inside": self.inner,
            "items": [str(i) for i in self.plan.items], "line": self.plan.wish.line,
            "notes": [asdict(n) for n in self.notes],
            "targets": [self._target(p) for p in self.plan.targets],
            **self.gentle.documents(),
            "hang": self.hang,
        }  # fmt: skip
        self.say("reading the traces")
        return out | self._traces(out)

    def _traces(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """What the traces tell, kept beside the revision of what told it."""
        from probes.capture import trace_facts

        def lost(name: str, why: str) -> None:
            document["notes"].append(asdict(Text(f"{name}: {why}", f"{name}：{why}")))

        found = trace_facts.trace_observations(document, self.folder, self.host, lost)
        return {"observations": [plain(o) for o in found], "observations_revision": trace_facts.TRACE_REVISION}

    def _target(self, planned: Planned) -> dict[str, Any]:
        target, pid = planned.target, planned.target.process.pid
        guest = next((g for g in self.guests if g.planned is planned), None)
        parts = [*planned.left_out(), *(self.gentle.part(pid, i) for i in planned.gentle), *self._inner(planned, guest)]
        iterations = guest.iterations if guest is not None else None
        return {
            **manifest.plain_target(target), "parts": [manifest.plain_part(p) for p in parts],
            "aftermath": manifest.plain_aftermath(self.after.get(pid)), "sources": self.gentle.sources(target),
            "iterations": iterations, "torch": guest.torch if guest is not None else None,
        }  # fmt: skip

    def _inner(self, planned: Planned, guest: inside.Inside | None) -> list[Part]:
        """The parts of what was to run inside."""
        given = self.from_servers.get(planned.target.process.pid, [])
        return [*given, *(p for p in self._called(planned, guest) if p.item not in {g.item for g in given})]

    def _called(self, planned: Planned, guest: inside.Inside | None) -> list[Part]:
        if guest is not None and guest.refusal is None:
            silent = (p if p.why or p.outcome is not Outcome.TIMEOUT else replace(p, why=_SILENT) for p in guest.parts)
            return [replace(p, rung=p.rung or guest.rung) for p in silent]
        if guest is not None and guest.refusal is not None:
            why, outcome = guest.refusal, Outcome.TIMEOUT if guest.stuck else Outcome.FAILED
            return [Part(i, outcome, None, why.why, why.remedy) for i in planned.called]
        if self.still:
            return [Part(i, Outcome.REFUSED, None, _STILL) for i in planned.injected]
        return [Part(i, Outcome.FAILED, None, _BROKEN_OFF) for i in planned.injected] if self.plan.injects else []


_SILENT: Final = Text("the job did not say in time what became of it", "作业未及时报告结果")
_STILL: Final = Text("the job stands still: nothing is injected into one that hangs", "作业停滞：不会向挂起的作业注入")
_BROKEN_OFF: Final = Text("the capture was broken off before", "采集在此之前已中断")


def _boot_id() -> str:
    from probes.live_host import boot_id

    return boot_id()
