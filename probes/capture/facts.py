"""From a capture's raw document to observations: stacks, threads, GPUs, iterations, ranks, traces, in one time base.

Everything is computed again from what was read; only the traces, which may have been moved away, are kept as observations,
and computed again where they still lie there and were read by another revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, Final

from knowledge.observation import Clock, Observation, Source, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.capture import manifest, trace_facts
from probes.capture.manifest import mapping, rows, whole
from probes.capture.model import Target
from probes.capture.subjects import job_subject, process_subject, rank_subject, script
from probes.parse._process_rows import STATES

NAME: Final = "capture"
REVISION: Final = 1
_NO_STACKS: Final = {"refused": Status.DENIED, "failed": Status.FAILED, "timeout": Status.TIMEOUT}
_MOST: Final = 100_000  # iterations
_PROFILED: Final = frozenset({"torch", "kernels", "shapes", "flops"})  # parts that are a profiler in the job


def observations(
    document: Mapping[str, Any], folder: Path | None = None, host: str = "", source: str = ""
) -> list[Observation]:
    """Everything that a capture tells. Pure but for the traces in `folder` (None: only what is kept of them).

    Bad input never raises: what is no value where one is wanted is left out. `source` is what the document is called.
    """
    host = host or (h if isinstance(h := document.get("host"), str) else "")
    called = source or (str(folder / manifest.NAME) if folder is not None else manifest.NAME)
    emit = Emit(host, _moment(document), called)
    found = manifest.targets(document)
    _of_all(emit, document, found)
    for target, row in found:
        _about(emit, document, target, row)
    _of_stacks(emit, document, found)
    _of_waits(emit, document, found)
    _of_samples(emit, document, found)
    _of_ranks(emit, document)
    _of_traces(emit, document, folder, found)
    _enough(emit, document, found)
    return _once(emit.out)


class Emit:
    """Collects observations; `at` is UTC ns of the window's begin."""

    def __init__(self, host: str, at: int | None, called: str) -> None:
        self.host, self.at = host, at
        self.source = Source(NAME, called, revision=REVISION)
        self.out: list[Observation] = []

    def put(self, fact: str, subject: Subject, value: Value, shown: str = "") -> None:
        """A value; None is none."""
        if value is None or (isinstance(value, float) and not isfinite(value)):
            return
        clock = Clock.REALTIME if self.at is not None else Clock.NONE
        self.out.append(
            Observation(
                fact,
                subject,
                value,
                source=self.source,
                at=self.at,
                clock=clock,
                excerpt=excerpt(shown, 300) if shown else "",
            )
        )

    def lack(self, fact: str, subject: Subject, status: Status, why: str) -> None:
        """A value that there is not, with the reason."""
        self.out.append(Observation(fact, subject, None, status, self.source, detail=excerpt(why, 300)))


def _moment(document: Mapping[str, Any]) -> int | None:
    at = document.get("as_of")
    return at if isinstance(at, int) and not isinstance(at, bool) and 0 < at < 1 << 62 else None


def _once(found: Iterable[Observation]) -> list[Observation]:
    """Without what two analyses both said."""
    kept: dict[tuple[str, Subject, str], Observation] = {}
    for o in found:
        kept.setdefault((o.fact, o.subject, repr(o.value)), o)
    return list(kept.values())


# --- the capture and its targets -----------------------------------------------------------------


def _of_all(emit: Emit, document: Mapping[str, Any], found: Sequence[tuple[Target, Mapping[str, Any]]]) -> None:
    """How many processes there are, and whether they are all that were asked for: one may stand for a job of many ranks."""
    subject = node(emit.host)
    emit.put("capture.targets", subject, len(found))
    if "--all-ranks" in str(document.get("line") or ""):
        notes = [clean(manifest.text(n).en) for _, row in found for n in rows(row.get("notes"))]
        emit.put("capture.ranks.whole", subject, len(found) > 1 and not notes, "; ".join(dict.fromkeys(notes)))


def _about(emit: Emit, document: Mapping[str, Any], target: Target, row: Mapping[str, Any]) -> None:
    subject = process_subject(target.process.pid, emit.host)
    window = mapping(document.get("window"))
    began, ended = whole(window.get("began")), whole(window.get("ended"))
    emit.put("capture.window.seconds", subject, round((ended - began) / 1e9, 3) if ended > began else None)
    emit.put("capture.samples", subject, _samples(document, target))
    parts = rows(row.get("parts"))
    missing = sorted({str(p.get("item")) for p in parts if p.get("outcome") not in ("ok", "partial", "declined")})
    emit.put("capture.parts.missing", subject, tuple(clean(m) for m in missing), "; ".join(f"{m}" for m in missing))
    for part in parts:
        if part.get("item") == "stacks" and (status := _NO_STACKS.get(str(part.get("outcome")))):
            said = [manifest.text(part.get(name)).en for name in ("why", "remedy")]
            emit.lack("stack.hot.function", subject, status, clean("; ".join(s for s in said if s)))
    after = mapping(row.get("aftermath"))
    emit.put("process.script", subject, script(target) or None)
    if after:
        emit.put("capture.ended", subject, mapping(after.get("after")).get("alive") is False)
        worries = [manifest.text(w).en for w in rows(after.get("worries"))]
        if mapping(after.get("after")).get("alive") is False:
            emit.lack("capture.left_clean", subject, Status.FAILED, "the process ended")
        else:
            emit.put("capture.left_clean", subject, not worries, "; ".join(worries))
        _paid(emit, subject, after)
    _relations(emit, target, subject)
    _steps(emit, subject, row, mapping(document.get("window")))


def _enough(emit: Emit, document: Mapping[str, Any], found: Sequence[tuple[Target, Mapping[str, Any]]]) -> None:
    """Whether it is known of a process what it did: that nothing was found says something only then."""
    items = document.get("items")
    stacks = isinstance(items, list) and "stacks" in items
    wanted = ("stack.python.share", "process.hung") if stacks else ("thread.cpu.share", "capture.samples")
    seen = (o for o in emit.out if o.fact in wanted and o.status is Status.OK)
    told = {o.subject for o in seen if o.fact != "capture.samples" or o.value}
    for target, _ in found:
        subject = process_subject(target.process.pid, emit.host)
        emit.put("capture.enough", subject, subject in told)


def _samples(document: Mapping[str, Any], target: Target) -> int:
    """How often the stacks of a target were seen; without stacks, how often its threads were."""
    from probes.capture.stacks import stack_facts

    pid = target.process.pid
    with suppress(*_STRANGE):
        if str(pid) in mapping(document.get("stacks")) and (
            n := stack_facts.samples(mapping(document.get("stacks")), pid, _window(document))
        ):
            return n
    threads = mapping(document.get("threads"))
    at = threads.get("at")
    return len(at) if mapping(threads.get("rows")).get(str(pid)) and isinstance(at, list) else 0


def _paid(emit: Emit, subject: Subject, after: Mapping[str, Any]) -> None:
    longest = after.get("longest_ns")
    if isinstance(longest, int) and longest > 0:
        emit.put("capture.iteration.longest", subject, round(longest / 1e9, 6))
    before, later = after.get("iteration_before_ns"), after.get("iteration_after_ns")
    if isinstance(before, int) and isinstance(later, int) and before > 0 and later > 0:
        emit.put(
            "capture.rate.loss",
            subject,
            round(max(0.0, 100 * (1 - before / later)), 3),
            f"{before} ns, {later} ns an iteration",
        )


def _relations(emit: Emit, target: Target, subject: Subject) -> None:
    """Who is which rank of which job, on which GPU; and in which state the process was found."""
    for pci in target.gpus:
        emit.put("process.uses_gpu", subject, f"gpu:{clean(pci)}")
    if not target.gpus and target.process.python is not None and not target.process.python.cuda:
        emit.lack("process.uses_gpu", subject, Status.NONE_SEEN, "libcuda is not mapped into the process")
    emit.put("process.state", subject, STATES.get(target.process.state))
    job, rank = job_subject(target, emit.host), rank_subject(target, emit.host)
    if job is None:
        return
    emit.put("process.in_job", subject, f"job:{job.id}")
    if rank is None:
        return
    emit.put("process.is_rank", subject, f"rank:{rank.id}", f"rank {rank.id} of job {job.id}")
    emit.put("rank.is_process", rank, f"process:{subject.id}")
    for pci in target.gpus:
        emit.put("rank.uses_gpu", rank, f"gpu:{clean(pci)}")


def _steps(emit: Emit, subject: Subject, row: Mapping[str, Any], window: Mapping[str, Any]) -> None:
    """Iterations as they were counted at the anchor."""
    found = mapping(row.get("iterations"))
    ends = found.get("ends")
    if not isinstance(ends, list):
        return
    moments = [whole(e) for e in ends[:_MOST]]
    pairs = [(a, b) for a, b in pairwise(moments) if b > a]
    spans = [b - a for a, b in pairs]
    emit.put("step.count", subject, len(moments))
    anchor = found.get("anchor")
    emit.put("step.anchor", subject, excerpt(anchor, 200) if isinstance(anchor, str) and anchor else None)
    if spans:
        usual, worst = median(spans), max(_of_the_job(pairs, row, window), default=None)
        emit.put("step.median", subject, round(usual / 1e9, 6), f"{len(spans)} iterations")
        if worst is None:
            for fact in ("step.worst", "step.worst.ratio"):
                emit.lack(
                    fact, subject, Status.FAILED, "the profiler started or stopped in every iteration that was counted"
                )
        else:
            emit.put("step.worst", subject, round(worst / 1e9, 6))
            emit.put("step.worst.ratio", subject, round(worst / usual, 3) if usual else None)
    batches = _numbers(found.get("batches"))
    if batches:
        emit.put("step.batches", subject, float(median(batches)))
    losses = _numbers(found.get("loss"), finite=False)
    if losses:
        emit.put("step.loss.nan", subject, any(not isfinite(v) for v in losses))
        finite = [v for v in losses if isfinite(v)]
        emit.put("step.loss.last", subject, finite[-1] if finite else None)
    norms = _numbers(found.get("gradnorm"))
    emit.put("step.gradnorm.last", subject, norms[-1] if norms else None)


def _of_the_job(pairs: Sequence[tuple[int, int]], row: Mapping[str, Any], window: Mapping[str, Any]) -> list[int]:
    """Lengths of the iterations in which a profiler neither started, stopped nor wrote what it had: those would be our doing.

    In a window of iterations the profiler is there from end to end; in one of time it is stopped early, and writes at the end.
    """
    ran = [(whole(p.get("began")), whole(p.get("ended"))) for p in rows(row.get("parts")) if p.get("item") in _PROFILED]
    ran = [(a, b) for a, b in ran if 0 < a < b]
    if not ran:
        return [b - a for a, b in pairs]
    began, ended = min(a for a, _ in ran), max(b for _, b in ran)
    if whole(window.get("iterations")):
        return [b - a for a, b in pairs if began <= a and b <= ended]
    over = began + whole(window.get("duration_ns"))
    return [b - a for a, b in pairs if a >= ended and b <= over]


def _numbers(values: Any, finite: bool = True) -> list[float]:
    """The numbers in a list; ``"nan"`` and ``"inf"`` are how JSON carries those."""
    out = []
    for value in values[:_MOST] if isinstance(values, list) else ():
        number: float | None = None
        if (isinstance(value, int | float) and not isinstance(value, bool)) or (
            isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "inf", "infinity")
        ):
            number = float(value)
        if number is not None and (isfinite(number) or not finite):
            out.append(number)
    return out


# --- what others make of their parts ---------------------------------------------------------------

# What arithmetic on a stranger's document comes to.
_STRANGE: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, ZeroDivisionError)
Told = Callable[[], Iterable[Observation]]


def _add(emit: Emit, told: Told) -> None:
    """What one analysis tells; a document that it cannot take is one that tells nothing."""
    with suppress(*_STRANGE):
        emit.out += [*told()]


def _of_stacks(emit: Emit, document: Mapping[str, Any], found: Sequence[tuple[Target, Mapping[str, Any]]]) -> None:
    from probes.capture.stacks import stack_facts

    stacks, threads = mapping(document.get("stacks")), mapping(document.get("threads")) or None
    for target, row in found:
        if str(target.process.pid) in stacks:
            subject = process_subject(target.process.pid, emit.host)
            _add(emit, partial(stack_facts.observations, stacks, target, subject, sources=mapping(row.get("sources")), threads=threads,
                               at=emit.at, window=_window(document)))  # fmt: skip


def _of_waits(emit: Emit, document: Mapping[str, Any], found: Sequence[tuple[Target, Mapping[str, Any]]]) -> None:
    """What the kernel recorded of threads that did not run, where that was asked for."""
    waits, stacks = mapping(document.get("offcpu")), mapping(document.get("stacks"))
    if not waits:
        return
    from probes.capture.offcpu import offcpu_facts

    for target, row in found:
        subject, pid = process_subject(target.process.pid, emit.host), str(target.process.pid)
        _add(emit, partial(offcpu_facts.observations, waits, stacks.get(pid), target, subject, sources=mapping(row.get("sources")),
                           driving=_driving(document, target, row), at=emit.at, window=_window(document)))  # fmt: skip


def _of_samples(emit: Emit, document: Mapping[str, Any], found: Sequence[tuple[Target, Mapping[str, Any]]]) -> None:
    from probes.capture.readings import gpu_facts, node_facts, thread_facts

    window, threads, gpus = _window(document), mapping(document.get("threads")), mapping(document.get("gpus"))
    for target, row in found:
        subject = process_subject(target.process.pid, emit.host)
        driving = _driving(document, target, row)
        if threads:
            _add(emit, partial(thread_facts.observations, threads, target, subject, driving=driving, window=window))
    if threads:
        _add(emit, partial(node_facts.observations, threads, emit.host, window=window))
    if gpus:
        _add(emit, partial(gpu_facts.observations, gpus, [t for t, _ in found], emit.host, window=window))


def _window(document: Mapping[str, Any]) -> tuple[int, int] | None:
    """Begin and end, monotonic ns; None where the document does not tell."""
    row = mapping(document.get("window"))
    began, ended = whole(row.get("began")), whole(row.get("ended"))
    return (began, ended) if 0 <= began < ended else None


def _driving(document: Mapping[str, Any], target: Target, row: Mapping[str, Any]) -> int | None:
    """The thread that runs the loop, by its stacks; None: the main one."""
    from probes.capture.stacks import stack_facts

    with suppress(*_STRANGE):
        return stack_facts.driving(
            mapping(document.get("stacks")), target.process.pid, mapping(row.get("sources")), _window(document)
        )
    return None


def _of_traces(
    emit: Emit, document: Mapping[str, Any], folder: Path | None, found: Sequence[tuple[Target, Mapping[str, Any]]]
) -> None:
    told, strange = trace_facts.traced(document, folder, emit.host)
    emit.out += told
    for target, _ in found if strange else ():
        names = ", ".join(clean(name) for name in strange)
        emit.lack("capture.parts.missing", process_subject(target.process.pid, emit.host), Status.FAILED,
                  f"facts that this version of gpudiag does not take from a capture: {names}")  # fmt: skip


def _of_ranks(emit: Emit, document: Mapping[str, Any]) -> None:
    from probes.capture.hang import rank_facts

    _add(emit, partial(rank_facts.observations, document, emit.host, emit.source.call))
