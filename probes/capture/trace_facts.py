"""Facts of the profiler traces of a capture, about the ranks and the job as the other facts name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from knowledge.errors import GpudiagError
from knowledge.observation import Observation, Scope, Source, Subject, node
from knowledge.observation_json import UnknownFactError, restored
from knowledge.text import clean, excerpt
from probes.capture import manifest
from probes.capture.manifest import rows
from probes.capture.model import Target
from probes.capture.provides import FACTS
from probes.capture.subjects import job_subject, process_subject, rank_subject

NAME: Final = "capture"
TRACE_REVISION: Final = 1  # of what traces are made into


def traced(document: Mapping[str, Any], folder: Path | None, host: str) -> tuple[list[Observation], list[str]]:
    """What the profiler traces told: as it was kept, or read again where it was made by another revision.

    Also the names of the kept facts that this version does not take from a capture: another one wrote them.
    """
    kept = document.get("observations")
    if document.get("observations_revision") != TRACE_REVISION and folder is not None and _files(document, folder):
        return trace_observations(document, folder, host), []
    out, strange = [], dict[str, None]()
    for row in kept if isinstance(kept, list) else ():
        try:
            one = restored(row)
        except UnknownFactError as error:
            strange.setdefault(error.fact)
        except ValueError:
            continue
        else:
            if one.fact in FACTS:
                out.append(one)
            else:
                strange.setdefault(one.fact)
    return out, list(strange)


def _files(document: Mapping[str, Any], folder: Path) -> list[tuple[Target, Path]]:
    """The traces that lie there, with whose they are."""
    out = []
    for target, row in manifest.targets(document):
        for part in rows(row.get("parts")):
            path = manifest.trace_path(folder, str(part.get("file") or ""))
            if path is not None and path.name.endswith((".json", ".json.gz")):
                out.append((target, path))
    return list({path: (target, path) for target, path in out}.values())


def trace_observations(
    document: Mapping[str, Any], folder: Path, host: str, lost: Callable[[str, str], None] = lambda *_: None
) -> list[Observation]:
    """Facts of the traces in `folder`, about the ranks and the job as the other facts name them. `lost`: file, why."""
    named = _files(document, folder)
    if not named:  # what reads traces takes a while to load
        return []
    from probes.trace.across import ranks
    from probes.trace.across.job import job_facts
    from probes.trace.breakdown import operators
    from probes.trace.columns import both
    from probes.trace.reading.reader import read
    from probes.trace.verdict import digest
    from probes.trace.verdict.facts import rank_observations

    needs = both(digest.NEEDS, ranks.NEEDS, operators.NEEDS)
    done: list[tuple[Target, Any, Any]] = []
    out: list[Observation] = []
    for target, path in named:
        try:
            trace = read(str(path), needs)
            found = digest.digest(trace)
        except GpudiagError as error:
            lost(path.name, error.message)
            continue
        if found.gpu_events or _uses_gpu(target):
            done.append(
                (target, found, ranks.digest(trace, found.window, found=found.iterations, idle=found.summary.idle))
            )
        out += _hot(trace, process_subject(target.process.pid, host), path.name)
    several = len(done) > 1
    compared = ranks.compare([timed for *_, timed in done], {}) if several else None
    timings = {t.file: t for t in compared.timings} if compared is not None and compared.collectives else {}
    for target, found, _ in done:
        job = job_subject(target, host) or Subject(Scope.JOB, f"pid-{target.process.pid}", node(host))
        subject = rank_subject(target, host) or Subject(Scope.RANK, str(target.rank or 0), job)
        out += rank_observations(found, subject, timings.get(found.file))
        if rank_subject(target, host) is None:  # so that its process is known to be it
            source = Source(NAME, path_of(folder), revision=TRACE_REVISION)
            out.append(Observation("rank.is_process", subject, f"process:{target.process.pid}", source=source))
    for name in dict.fromkeys(t.job or f"pid-{t.process.pid}" for t, *_ in done):
        digests = [found for t, found, _ in done if (t.job or f"pid-{t.process.pid}") == name]
        out += job_facts(digests, compared if len(digests) > 1 else None, Subject(Scope.JOB, name, node(host)))
    return out


def _uses_gpu(target: Target) -> bool:
    """Whether a trace without kernels is worth a word: of a job that has no GPU it is as it should be."""
    return bool(target.gpus) or (target.process.python is not None and target.process.python.cuda)


def path_of(folder: Path) -> str:
    """What a record is called in evidence."""
    return str(folder / manifest.NAME)


def _hot(trace: Any, subject: Subject, file: str) -> list[Observation]:
    """The operator with the most host time of its own, as a share of the time that operators were recorded."""
    from probes.trace.breakdown import operators
    from probes.trace.columns import Group

    with suppress(GpudiagError, ValueError, KeyError):
        ops = trace[Group.OP]
        stats = operators.op_stats(trace) if len(ops) else ()
        span = int(ops.end.max() - ops.start.min()) if stats else 0
        top = max(stats, key=lambda s: s.cpu_self_ns, default=None)
        if top is not None and span > 0:
            source = Source("trace", file, revision=TRACE_REVISION)
            shown = f"{top.cpu_self_ns / 1e6:.3f} ms / {span / 1e6:.3f} ms"
            return [
                Observation("operator.hot", subject, excerpt(clean(top.name), 200), source=source, excerpt=shown),
                Observation(
                    "operator.hot.share",
                    subject,
                    round(min(100.0, 100 * top.cpu_self_ns / span), 3),
                    source=source,
                    excerpt=shown,
                ),
            ]
    return []
