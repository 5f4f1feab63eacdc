"""What tests measured, beside what such hardware reaches and what this node reached before; over the diagnosis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from assistant.render.labels import colon, subject_name
from assistant.render.sheet import Heading, Items, Part, Table
from knowledge.facts import vocabulary
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Observation, Status, Subject
from knowledge.record import dataclass
from knowledge.text import clean
from knowledge.units import measured
from probes.active import spoken
from probes.runner import ProbeResult

if TYPE_CHECKING:
    from assistant.config import Output
    from assistant.diagnosis import Diagnosis
    from rules.factbase import FactBase

SCHEMA = "gpudiag/test/1"


class Measure(NamedTuple):
    """A measured fact, what it is held against, and what it is called."""

    fact: str
    typical: str
    change: str
    title: Text


MEASURES = (
    Measure("benchmark.h2d", "benchmark.host_copy.typical", "benchmark.h2d.change", Text("host to GPU", "主机到 GPU")),
    Measure("benchmark.d2h", "benchmark.host_copy.typical", "benchmark.d2h.change", Text("GPU to host", "GPU 到主机")),
    Measure("benchmark.d2d.median", "benchmark.peer_copy.typical", "benchmark.d2d.change", Text("GPU to GPU", "GPU 到 GPU")),
    Measure("benchmark.collective.busbw.largest", "benchmark.collective.busbw.typical",
            "benchmark.collective.busbw.change", Text("all-reduce, bus bandwidth", "all-reduce 总线带宽")),
    Measure("benchmark.rdma.bw.largest", "benchmark.rdma.bw.typical", "", Text("RDMA write", "RDMA 写")),
    Measure("benchmark.burn.gflops", "", "benchmark.burn.change", Text("gpu-burn", "gpu-burn")),
    Measure("gpu.active.temperature.max", "", "", Text("highest temperature", "最高温度")),
)  # fmt: skip
_TESTS = Text("Tests", "测试")
_MEASURED = Text("Measured", "测得")
_HEADER = (Text("test", "测试"), Text("outcome", "结果"), Text("time", "时间"))
_COLUMNS = (
    Text("measure", "项目"),
    Text("here", "本机"),
    Text("sound hardware", "正常硬件"),
    Text("since earlier tests", "较此前测试"),
)


@dataclass(frozen=True, slots=True)
class Done:
    """One test that was run: its result, and the names of its facts."""

    name: str
    result: ProbeResult

    def all(self, fact: str) -> list[Observation]:
        """Observations of a fact."""
        return [o for o in self.result.observations if o.fact == fact]

    @property
    def outcomes(self) -> list[str]:
        """Of its runs."""
        return [str(o.value) for o in self.all("active.outcome") if o.status is Status.OK]

    def why(self, lang: str) -> str:
        """Why it did not come to a result; empty when it did."""
        told = next((str(o.value) for o in self.all("active.why")), "")
        return _reason(self.all("active.reason")).in_(lang) or told or (self.result.detail if not self.outcomes else "")

    @property
    def seconds(self) -> float:
        """That its runs took."""
        return sum(float(o.value) for o in self.all("active.seconds") if isinstance(o.value, int | float))


def _reason(told: Sequence[Observation]) -> Text:
    """What the collector gave as code and data."""
    try:
        return spoken(json.loads(str(told[0].value))) if told else NO_TEXT
    except (ValueError, RecursionError):  # longer than what is kept of it
        return NO_TEXT


def show(
    done: Sequence[Done], diagnosis: Diagnosis, output: Output, tells: Any, verbose: bool, left_out: Sequence[str]
) -> str:
    """The whole answer in the format asked for. `left_out`: tests that could not run, and why."""
    if output.format == "json":
        return _json(done, diagnosis, output.lang, tells, left_out)
    from assistant.render.diagnosis import show as diagnosed

    parts = _parts(done, diagnosis.facts, output.lang, left_out)
    if output.format == "html":
        from assistant.render import html
        from assistant.render.sheet import html_parts
        from assistant.render.view import view

        return html.render(view(diagnosis, output.lang, tells, verbose), html_parts(parts))
    from assistant.render.trace_page import render

    return render(parts, output) + "\n" + diagnosed(diagnosis, output, tells, verbose=verbose)


def _parts(done: Sequence[Done], facts: FactBase, lang: str, left_out: Sequence[str]) -> list[Part]:
    labels = vocabulary()["active.outcome"].labels
    rows = []
    for one in done:
        outcomes = [labels.get(name, NO_TEXT).in_(lang) or name for name in dict.fromkeys(one.outcomes)]
        why = one.why(lang)
        said = ", ".join(outcomes) + (f"{colon(lang)}{why}" if why and outcomes else why)
        rows.append((one.name, clean(said), f"{max(one.seconds, 1):.0f} s" if "ended" in one.outcomes else "-"))
    out: list[Part] = [Heading(_TESTS.in_(lang)), Table(tuple(t.in_(lang) for t in _HEADER), tuple(rows))]
    if left_out:
        out.append(Items(tuple(left_out)))
    if measured := _measured(facts, lang):
        out += [Heading(_MEASURED.in_(lang)), Table(tuple(t.in_(lang) for t in _COLUMNS), tuple(measured))]
    return out


def _measured(facts: FactBase, lang: str) -> list[tuple[str, str, str, str]]:
    rows = []
    for measure in MEASURES:
        found = figures(facts, measure.fact)
        if not found:
            continue
        unit = vocabulary()[measure.fact].unit
        low, high = min(found, key=lambda f: f[1]), max(found, key=lambda f: f[1])
        here = measured(low[1], unit)
        if len(found) > 1 and high[1] > low[1]:
            whose, most = subject_name(low[0], lang), measured(high[1], unit)
            here = Text(f"{low[1]:g} ({whose}) to {most}", f"{low[1]:g}（{whose}）至 {most}").in_(lang)
        usual = sorted({v for s, _ in found for f, v in figures(facts, measure.typical, s)} if measure.typical else ())
        about = (
            Text(f"about {measured(usual[0], unit)}", f"约 {measured(usual[0], unit)}").in_(lang)
            if len(usual) == 1
            else "-"
        )
        changes = [v for s, _ in found for _, v in figures(facts, measure.change, s)] if measure.change else []
        moved = "-" if not changes else _percent(min(changes), max(changes))
        rows.append((measure.title.in_(lang), here, about, moved))
    return rows


def _percent(low: float, high: float) -> str:
    return f"{low:+.1f} %" if low == high else f"{low:+.1f} .. {high:+.1f} %"


def figures(facts: FactBase, fact: str, on: Subject | None = None) -> list[tuple[Subject, float]]:
    """The numbers of a fact now, by subject."""
    now = (k.inner for k in facts.observations if k.fact == fact)
    told = [
        o for o in now if o.status is Status.OK and not o.source.call.startswith("history:") and on in (None, o.subject)
    ]
    found = {o.subject: float(o.value) for o in told if isinstance(o.value, int | float)}
    return sorted(found.items(), key=lambda item: str(item[0]))


def _json(done: Sequence[Done], diagnosis: Diagnosis, lang: str, tells: Any, left_out: Sequence[str]) -> str:
    from assistant.render import json_
    from assistant.render.trace_page import as_json

    measured = [
        {"fact": m.fact, "subject": json_.subject(s), "value": v, "unit": vocabulary()[m.fact].unit,
         "typical": next((x for _, x in figures(diagnosis.facts, m.typical, s)), None) if m.typical else None,
         "change_percent": next((x for _, x in figures(diagnosis.facts, m.change, s)), None) if m.change else None}
        for m in MEASURES for s, v in figures(diagnosis.facts, m.fact)
    ]  # fmt: skip
    tests = [
        {"name": one.name, "outcomes": one.outcomes, "why": one.why(lang) or None, "seconds": one.seconds,
         "runs": [o.source.call for o in one.all("active.test")]} for one in done
    ]  # fmt: skip
    return as_json({"schema": SCHEMA, "tests": tests, "left_out": list(left_out), "measured": measured,
                    "diagnosis": json_.plain(diagnosis, lang, tells)})  # fmt: skip
