"""A metrics page of vLLM, SGLang, Triton Inference Server or TGI, or the same series from Prometheus.

Each engine with each model is a subject of its own; of a router in front of engines only their number is told. A text that holds the page twice or more, one answer behind the
other, tells what happened in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.observation import Clock, Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, lines_of
from probes.parse import _serving_names as names
from probes.parse._prometheus import Sample, exposition
from probes.parse._serving_facts import Told, model_of
from probes.parse._serving_read import Server, pages, servers
from probes.parse._smi_values import Reading

NAME, REVISION = "serving-scrape", 2


def sniff(head: str) -> int:
    """100 on a series of one of these servers, 90 on its comments alone."""
    return names.recognise(head)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one text; never raises."""
    page = exposition(lines_of(text))
    out: list[Observation] = []
    for engine in names.ENGINES:
        answers = pages([s for s in page.samples if names.engine_of(s.name, s.labels) == engine])
        if answers:
            out += _engine(engine, answers, context)
    return out + _router([s for s in page.samples if names.is_router(s.name, s.labels)], context)


def _router(samples: Sequence[Sample], context: Context) -> list[Observation]:
    """How many engines a router has. What it says of them is its own average: their pages tell how they are."""
    behind = {s.labels["server"]: s for s in reversed(samples) if s.labels.get("server")}
    if not behind:
        return []
    first = min(behind.values(), key=lambda s: s.line)
    source, subject = context.at(NAME, REVISION, first.line), Subject(Scope.OBJECT, "vllm router", node(context.host))
    return [Observation(names.ROUTED, subject, len(behind), source=source, excerpt=excerpt(first.text, 300))]


def _engine(engine: str, answers: Sequence[Sequence[Sample]], context: Context) -> list[Observation]:
    out: list[Observation] = []
    before = {s.key: s for s in servers(answers[0])} if len(answers) > 1 else {}
    found = servers(answers[-1])
    for server in found:
        subject = Subject(Scope.OBJECT, subject_id(engine, server, found), node(context.host))
        earlier = before.get(server.key)

        def emit(
            fact: str, reading: Reading | Value, sample: Sample | None, note: str, subject: Subject = subject
        ) -> None:
            value, status, detail = _parts(reading)
            shown = ((sample.text if sample else "") + (f" ({note})" if note else "")).strip()
            at = sample.at if sample is not None else None
            out.append(
                Observation(
                    fact, subject, value, status, context.at(NAME, REVISION, sample.line if sample else None), at,
                    Clock.REALTIME if at is not None else Clock.NONE, excerpt=excerpt(shown, 300), detail=excerpt(detail),
                )
            )  # fmt: skip

        emit("serving.engine", engine, None, "")
        if model := model_of(server):
            emit("serving.model", model, None, "")
        Told(engine, server, emit, earlier, _apart(earlier, server)).all()
    return out


def _apart(earlier: Server | None, later: Server) -> float | None:
    """Seconds between two pages whose samples carry times."""
    if earlier is None:
        return None
    times = [
        next((s.at for found in page.own.values() for s in found if s.at is not None), None)
        for page in (earlier, later)
    ]
    return (
        (times[1] - times[0]) / 1e9 if times[0] is not None and times[1] is not None and times[1] > times[0] else None
    )


def _parts(reading: Reading | Value) -> tuple[Value, Status, str]:
    if isinstance(reading, Reading):
        return reading.value, reading.status, reading.detail
    return reading, Status.OK, ""


def subject_id(engine: str, server: Server, among: Sequence[Server], base: str = "") -> str:
    """How one server is called: engine and model, or engine and port (`base`); more where that is not one of `among`."""
    by_model = not base or engine == "triton"  # one Triton serves many models from one port
    words = [base or engine]
    if by_model and (model := model_of(server)):
        words.append(model)
    if not by_model and len({s.key.model for s in among}) > 1:
        words.append(model_of(server))
    if len({s.key.rank for s in among if s.key.model == server.key.model}) > 1:
        words.append(f"engine {clean(server.key.rank)[:20] or '-'}")
    if len({s.key.place for s in among}) > 1:
        words.append(f"at {clean(server.key.place)[:80] or '-'}")
    return " ".join(words).replace("\n", " ")


FORMAT = DocumentFormat(
    NAME, "metrics page of vLLM, SGLang, Triton or TGI", REVISION, (*names.FACTS, names.ROUTED), sniff, parse
)
