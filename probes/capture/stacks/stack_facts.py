"""Facts from sampled stacks: what the thread that runs the loop does, and which function of the program does it.

Shares are percent of the thread's time in the window. Fewer than `FEWEST` samples give no share at all: of twenty, one is 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from knowledge.observation import Observation, Status, Subject
from knowledge.text import digits, excerpt
from probes.capture.model import Target
from probes.capture.readings._telling import Gap, Teller, Window, mapping
from probes.capture.stacks import blame, pyspy, stacks
from probes.capture.stacks.activity import State
from probes.capture.stacks.blame import Place, Tally
from probes.capture.stacks.stack_document import StackDoc, looks
from probes.capture.stacks.thread_states import States

PROBE: Final = "py-spy"
FEWEST: Final = 20
_NAMED: Final = (
    "data_wait",
    "data_work",
    "collective",
    "sync",
    "python",
    "operator",
    "checkpoint",
    "logging",
    "sleep",
    "io",
)
_SHARES: Final = (*_NAMED, "backward", "optimizer", "compile", "import", "gc", "gil_wait")
_WORKERS: Final = (
    "stack.workers.busy.share",
    "stack.workers.function",
    "stack.workers.cpu.share",
    "stack.workers.read.share",
)
_NOBODY: Final = "no function of the program was seen in it"
_UNREAD: Final = "the states of its threads were not read: capture with `--with stacks,cpu`"


def observations(
    documents: Mapping[str, Any],
    target: Target,
    subject: Subject,
    *,
    sources: Mapping[str, str] | None = None,
    threads: Mapping[str, Any] | None = None,
    at: int | None = None,
    window: Window | None = None,
) -> list[Observation]:
    """What the stacks of one target and of its workers tell.

    `documents`: the capture's stacks, by pid; `threads`: its ThreadsDoc; `sources`: "file:line" to text; `at`: UTC ns of the window's
    begin; `window`: the part that counts, monotonic ns. Never raises; what could not be had gives its facts with the reason.
    """
    pid, lines = target.process.pid, _texts(sources)
    found = _document(documents, pid, window)
    tell = _Tell(subject, at, f"py-spy record --nonblocking --rate {found['rate']} --pid {pid}" if found else "")
    tid = driving_thread(found, pid, lines) if found else None
    if found is None or tid is None:
        tell.absent(_why(found, mapping(documents).get(str(pid))))
    else:
        states = States(threads, pid)
        tell.tally(blame.tally(found, tid, lines, states), lines, _remarks(found), states.gil_known(tid))
        _gil(tell, found, tid, states)
    _workers(tell, documents, target, lines, threads, window, known=found is not None)
    return tell.out


def driving(
    documents: Mapping[str, Any], pid: int, sources: Mapping[str, str] | None = None, window: Window | None = None
) -> int | None:
    """The OS number of the thread that runs the loop of a process; None where its stacks do not tell."""
    found = _document(documents, pid, window)
    tid = driving_thread(found, pid, _texts(sources)) if found else None
    return digits(tid) if tid is not None else None


def driving_thread(doc: StackDoc, pid: int, sources: Mapping[str, str]) -> str | None:
    """The same as a key of the document's threads."""
    return blame.driving(doc, pid, sources)


def samples(documents: Mapping[str, Any], pid: int, window: Window | None = None) -> int:
    """How often the thread that runs the loop was looked at, about; 0 without stacks. A stack that stays is one span of many looks."""
    found = _document(documents, pid, window)
    tid = driving_thread(found, pid, {}) if found else None
    return _count(found, tid) if found is not None and tid is not None else 0


def _count(doc: StackDoc, tid: str) -> int:
    return looks(doc, sum(s[1] for s in doc["threads"][tid]["samples"]))


def _texts(sources: Mapping[str, str] | None) -> dict[str, str]:
    return {k: v for k, v in mapping(sources).items() if isinstance(v, str)}


def _document(documents: Mapping[str, Any], pid: int, window: Window | None) -> StackDoc | None:
    """The stacks of a process that were sampled; None where there are none."""
    found = stacks.restored(mapping(documents).get(str(pid)))
    if found is None or found["error"]:
        return None
    found = stacks.clipped(found, *window) if window else found
    return found if any(t["samples"] for t in found["threads"].values()) else None


def _why(found: StackDoc | None, raw: object) -> Gap:
    told = mapping(raw)
    if not told:
        return Gap(Status.NOT_ASKED, "its stacks were not sampled")
    code = str(told.get("code") or ("nothing-sampled" if found is None and not told.get("error") else "failed"))
    refusal = pyspy.why(code, str(told.get("detail") or ""))
    remedy = f"; {refusal.remedy.en}" if refusal.remedy.en else ""
    return Gap(pyspy.status(code), f"{excerpt(str(told.get('error') or refusal.why.en), 200)}{remedy}")


def _remarks(doc: StackDoc) -> str:
    """What is wrong with a recording that holds samples all the same."""
    said = []
    if doc.get("torn"):
        said.append(f"{doc.get('torn')} torn stacks left out")
    if doc.get("misses"):
        said.append(f"{doc.get('misses')} samples could not be read")
    if (real := doc.get("real_rate")) and real < 0.7 * doc["rate"]:
        said.append(f"py-spy fell behind: {real:.0f} instead of {doc['rate']} samples a second")
    if doc.get("cut"):
        said.append("cut: more was recorded than is kept")
    if doc.get("left_early"):
        said.append("the process ended within the window")
    return "; ".join(said)


class _Tell:
    """Tells the facts of one target."""

    def __init__(self, subject: Subject, at: int | None, call: str) -> None:
        self._subject, self._call = subject, call
        self._tell = Teller(PROBE, at)

    @property
    def out(self) -> list[Observation]:
        return self._tell.out

    def put(self, fact: str, value: Any, shown: str = "") -> None:
        self._tell.add(fact, self._subject, value, self._call, shown)

    def absent(self, why: Gap) -> None:
        """Every fact of the driving thread, with the reason that it is missing."""
        for activity in _SHARES:
            self.put(f"stack.{activity}.share", why)
        for activity in _NAMED:
            self.put(f"stack.{activity}.function", why)
        for fact in ("stack.hot.share", "stack.hot.function", "stack.gil.holder"):
            self.put(fact, why)

    def tally(self, found: Tally, sources: Mapping[str, str], remarks: str, gil_known: bool) -> None:
        few = Gap(Status.FAILED, f"only {found.samples} samples: too few for a share")
        enough = found.samples >= FEWEST
        for activity in _SHARES:
            ns = found.activity[activity]
            top = found.top(activity)
            shown = _shown(found, ns, top[0] if top else None, sources, remarks, activity)
            blind = activity == "gil_wait" and not gil_known
            share = Gap(Status.UNSUPPORTED, _UNREAD) if blind else round(found.share(activity), 1) if enough else few
            self.put(f"stack.{activity}.share", share, shown)
            if activity in _NAMED:
                self._function(f"stack.{activity}.function", found, top, sources, activity)
        hot = blame.most(found.hot)
        share = round(100 * hot[1] / found.total, 1) if hot and found.total else 0.0
        shown = _shown(found, hot[1] if hot else 0, hot[0] if hot else None, sources, remarks)
        self.put("stack.hot.share", share if enough else few, shown)
        self._function("stack.hot.function", found, hot, sources)

    def _function(
        self, fact: str, found: Tally, top: tuple[Place, int] | None, sources: Mapping[str, str], activity: str = ""
    ) -> None:
        if top is None:
            self.put(fact, Gap(Status.NONE_SEEN, _NOBODY))
            return
        place, ns = top
        self.put(fact, found.said(place, activity), _shown(found, ns, place, sources, "", activity))


def _shown(
    found: Tally, ns: int, place: Place | None, sources: Mapping[str, str], remarks: str, activity: str = ""
) -> str:
    """ "96 of 100 samples: for batch in loader:"."""
    count = round(ns * found.samples / found.total) if found.total else 0
    said = f"{count} of {found.samples} samples"
    if place is not None:
        text = sources.get(f"{place.file}:{found.line(place, activity)}", "")
        said += f": {text}" if text else ""
    return f"{said} ({remarks})" if remarks else said


def _gil(tell: _Tell, doc: StackDoc, tid: str, states: States) -> None:
    if not states.gil_known(tid):
        tell.put("stack.gil.holder", Gap(Status.UNSUPPORTED, _UNREAD))
        return
    found = blame.gil_holders(doc, tid, states)
    top = found.top("python")
    if top is None:
        tell.put("stack.gil.holder", Gap(Status.NONE_SEEN, "no other thread ran Python while it waited for the lock"))
        return
    tell.put(
        "stack.gil.holder",
        found.said(top[0]),
        f"{100 * top[1] / found.total:.0f} % of what other threads ran meanwhile",
    )


def _workers(
    tell: _Tell, documents: Mapping[str, Any], target: Target, sources: Mapping[str, str], threads: Mapping[str, Any] | None,
    window: Window | None, known: bool,
) -> None:  # fmt: skip
    helpers = {h.pid: d for h in target.helpers if (d := _document(documents, h.pid, window))}
    found = blame.worker_tallies(helpers, sources, threads)
    if not found:
        blind = not known or (target.helpers and not helpers)
        why = Gap(Status.NOT_ASKED, "the stacks of its child processes were not sampled") if blind else Gap(Status.NOT_APPLICABLE, "its data loader has no workers")  # fmt: skip
        tell.put("stack.workers", why if blind else 0)
        for fact in _WORKERS:
            tell.put(fact, why)
        return
    tell.put("stack.workers", len(found), f"pids {', '.join(map(str, found))}")
    every = [whole for whole, _ in found.values()]
    count = sum(t.samples for t in every)
    few = Gap(Status.FAILED, f"only {count} samples of workers: too few for a share") if count < FEWEST else None
    busy = [100 * work.total / whole.total for whole, work in found.values() if whole.total]
    shown = ", ".join(f"{pid}: {share:.0f} %" for pid, share in zip(found, busy, strict=False))
    tell.put("stack.workers.busy.share", few or sum(busy) / len(busy), shown)
    _worker_function(tell, [work for _, work in found.values()], sources)
    for fact, wanted in (("cpu", (State.CPU,)), ("read", (State.READ, State.DISK))):
        seen = [t for t in every if set(t.states) != {None}]
        shares = [100 * sum(t.states[s] for s in wanted) / max(1, t.total - t.states[None]) for t in seen]
        told = few or (sum(shares) / len(shares) if shares else Gap(Status.UNSUPPORTED, _UNREAD))
        tell.put(f"stack.workers.{fact}.share", told)


def _worker_function(tell: _Tell, work: list[Tally], sources: Mapping[str, str]) -> None:
    together = Tally()
    for one in work:
        together.total += one.total
        together.samples += one.samples
        together.hot.update(one.hot)
        together.lines.update(one.lines)
        together.callers.update(one.callers)
    top = blame.most(together.hot)
    if top is None:
        tell.put("stack.workers.function", Gap(Status.NONE_SEEN, "no worker was seen at work"))
        return
    tell.put("stack.workers.function", together.said(top[0]), _shown(together, top[1], top[0], sources, ""))
