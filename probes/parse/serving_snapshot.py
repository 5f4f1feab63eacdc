"""Snapshots of inference servers by the collector ``serving``: their metrics pages read twice, and their processes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from knowledge.observation import Observation, Scope, Status, Subject, Value
from knowledge.text import clean, digits
from probes.base import Context, DocumentFormat, Line
from probes.parse import _host_snapshot as shared
from probes.parse import _serving_names as names
from probes.parse._host_snapshot import AS_ROOT, Snapshot, gap, mapping, mappings, whole, words
from probes.parse._prometheus import Sample, exposition
from probes.parse._serving_facts import Told, model_of
from probes.parse._serving_read import Server, servers
from probes.parse._smi_values import Reading
from probes.parse.serving_scrape import subject_id

NAME, REVISION, SCHEMA = "serving-snapshot", 2, "gpudiag/serving/1"
BLIND = "no server is seen, and only some of the machine's processes are: run gpudiag on the node itself, as root"
# Command-line options that say how many requests a batch may hold.
_LIMITS = ("--max-num-seqs", "--max-running-requests", "--max-batch-size")
PROVIDES = tuple(
    dict.fromkeys(
        (*names.FACTS, "node.serving.servers", "serving.process", "serving.port", "serving.age", "serving.frontend.cpu",
         "serving.cuda_graphs.enabled", "serving.chunked_prefill.enabled")
    )
)  # fmt: skip


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document; never raises."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    found = document.get("servers")
    if not isinstance(found, list):
        why = gap(document) or Reading(None, Status.FAILED, "the document is cut or is no JSON")
        emit.add("node.serving.servers", emit.node, why, "/proc")
        return emit.out
    known = [one for one in mappings(found) if one.get("engine") in names.ENGINES][:64]
    looked_at = whole(document.get("looked_at"))
    count: Reading | int = len(known)
    if not known and document.get("kernel") is False:
        count = Reading(None, Status.DENIED, BLIND)
    emit.add("node.serving.servers", emit.node, count, "/proc", f"{looked_at or 0} command lines looked at")
    for one in known:
        _server(emit, one, whole(document.get("hertz")) or 100)
    return emit.out


def _server(emit: Snapshot, one: Mapping[str, Any], hertz: int) -> None:
    engine, port, pid = str(one["engine"]), whole(one.get("port")), whole(one.get("pid"))
    base = f"{engine} on port {port}" if port is not None else f"{engine} process {pid or '-'}"
    readings = mappings(one.get("readings"))
    pages = [servers(_samples(reading, engine)) for reading in readings]
    subjects: list[Subject] = []
    if pages and pages[-1]:
        before = {s.key: s for s in pages[0]} if len(pages) > 1 else {}
        for server in pages[-1]:
            subject = Subject(Scope.OBJECT, subject_id(engine, server, pages[-1], base), emit.node)
            subjects.append(subject)
            _page(emit, subject, engine, server, before.get(server.key), readings)
    else:
        subjects.append(Subject(Scope.OBJECT, base, emit.node))
        emit.add("serving.state", subjects[0], _state(one, readings), _call(readings, port), _shown(one, readings))
    for subject in subjects:
        emit.add("serving.engine", subject, engine, f"/proc/{pid}/cmdline")
        _process(emit, subject, one, port, pid)
        _options(
            emit, subject, engine, {clean(k): v for k, v in mapping(one.get("options")).items()}, f"/proc/{pid}/cmdline"
        )
        _frontend(emit, subject, one, hertz)


def _samples(reading: Mapping[str, Any], engine: str) -> list[Sample]:
    lines = [Line(i, line) for i, line in enumerate(words(reading.get("lines")), 1)]
    return [s for s in exposition(lines).samples if names.engine_of(s.name, s.labels) == engine]


def _page(
    emit: Snapshot,
    subject: Subject,
    engine: str,
    server: Server,
    before: Server | None,
    readings: list[Mapping[str, Any]],
) -> None:
    call = _call(readings, None)

    def add(fact: str, reading: Reading | Value, sample: Sample | None, note: str) -> None:
        shown = (sample.text if sample else "") + (f" ({note})" if note else "")
        emit.add(fact, subject, reading, call, shown.strip())

    if model := model_of(server):
        add("serving.model", model, None, "")
    times = [whole(r.get("monotonic_ns")) for r in (readings[0], readings[-1])]
    first, last = times
    seconds = (last - first) / 1e9 if first is not None and last is not None and last > first else None
    Told(engine, server, add, before, seconds if before is not None else None).all()


def _state(one: Mapping[str, Any], readings: list[Mapping[str, Any]]) -> Reading | str:
    """Why there is no page."""
    if not readings:
        missing = gap(one)
        if missing is not None:
            return missing
        if one.get("guessed"):
            why = f"its open files cannot be seen and nobody listens at port {whole(one.get('port'))}; {AS_ROOT}"
            return Reading(None, Status.DENIED, why)
        return "starting" if one.get("listens") == [] else Reading(None, Status.FAILED, "it was not asked")
    answer = readings[-1]
    if "hung" in answer:
        return "silent"
    status = whole(answer.get("status"))
    if status in (401, 403):
        return Reading(None, Status.DENIED, f"the server answered {status}: it wants a key, and gpudiag sends none")
    if status is not None and status < 500:
        return "no_metrics"
    return gap(answer) or Reading(None, Status.FAILED, f"the server answered {status}")


def _call(readings: list[Mapping[str, Any]], port: int | None) -> str:
    told = next((r["call"] for r in readings if isinstance(r.get("call"), str)), "")
    return clean(told)[:120] or f"port {port}"


def _shown(one: Mapping[str, Any], readings: list[Mapping[str, Any]]) -> str:
    if not readings:
        return "it listens at no port" if one.get("listens") == [] else ""
    answer = readings[-1]
    if "hung" in answer:
        return f"no answer within {answer.get('seconds', '?')} s"
    return f"HTTP {answer.get('status', '?')}"


def _process(emit: Snapshot, subject: Subject, one: Mapping[str, Any], port: int | None, pid: int | None) -> None:
    pids = one.get("pids")
    for number in [p for p in pids if whole(p) is not None][:64] if isinstance(pids, list) else []:
        emit.add("serving.process", subject, f"process:{number}", f"/proc/{number}/stat")
    if port is not None and port < 1 << 16:
        emit.add("serving.port", subject, port, f"/proc/{pid}/net/tcp")
    age = _number(one.get("age"))
    if age is not None:
        emit.add("serving.age", subject, age, f"/proc/{pid}/stat")


def _number(value: object) -> float | None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if sound and isinstance(value, int | float) else None


def _options(emit: Snapshot, subject: Subject, engine: str, options: Mapping[str, Any], call: str) -> None:
    add = partial(emit.add, subject=subject, call=call)
    for name in _LIMITS:
        value = digits(str(options.get(name))) or 0
        if 0 < value < 1 << 31:
            add("serving.requests.limit", reading=value, shown=f"{name} {value}")
            break
    eager = next((n for n in ("--enforce-eager", "--disable-cuda-graph") if _on(options, n)), "")
    if eager:
        add("serving.cuda_graphs.enabled", reading=False, shown=eager)
    size = options.get("--chunked-prefill-size")
    if isinstance(size, str) and size.lstrip("-").isdigit():
        add("serving.chunked_prefill.enabled", reading=not size.startswith("-"), shown=f"--chunked-prefill-size {size}")
    elif _on(options, "--no-enable-chunked-prefill"):
        add("serving.chunked_prefill.enabled", reading=False, shown="--no-enable-chunked-prefill")
    elif "--enable-chunked-prefill" in options:
        on = _on(options, "--enable-chunked-prefill")
        add("serving.chunked_prefill.enabled", reading=on, shown="--enable-chunked-prefill" + ("" if on else " false"))
    if engine == "sglang" and _on(options, "--disable-radix-cache"):
        add("serving.prefix_cache.enabled", reading=False, shown="--disable-radix-cache")


def _on(options: Mapping[str, Any], name: str) -> bool:
    return name in options and str(options[name]).lower() not in ("false", "0")


def _frontend(emit: Snapshot, subject: Subject, one: Mapping[str, Any], hertz: int) -> None:
    """The busiest main thread of the processes that talk to clients."""
    ticks, seconds = mappings(one.get("ticks")), _number(one.get("ticks_seconds"))
    if len(ticks) != 2 or not seconds:
        return
    spent = []
    for pid, first in ticks[0].items():
        before, after = whole(first), whole(ticks[1].get(pid))
        if before is not None and after is not None and after >= before and digits(pid) is not None:
            spent.append((after - before, pid))
    if spent:
        most, pid = max(spent)
        shown = f"{most} of {seconds * hertz:.0f} clock ticks"
        emit.add(
            "serving.frontend.cpu", subject, round(most / hertz / seconds, 3), f"/proc/{pid}/task/{pid}/stat", shown
        )


FORMAT = DocumentFormat(NAME, "gpudiag serving snapshot", REVISION, PROVIDES, sniff, parse)
