from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.metrics import metrics
from knowledge.observation import Observation, Status
from probes.parse import prometheus_answer
from probes.parse.amd_exporter_scrape import FORMAT
from tests.probes.parse.smi_case import CONTEXT, capture, check_any, check_cut, parse, shuffled_lines, status, value

NAME, HEALTHY = "amd/amd-exporter-sick.prom", "amd/amd-exporter-healthy.prom"


def test_series_become_facts_of_the_gpu_by_its_number() -> None:
    got = parse(FORMAT, NAME)
    assert value(got, "gpu.ras.uncorrected", "amd:5") == 3
    assert value(got, "gpu.ras.uncorrected.blocks", "amd:5") == ("umc",)
    assert value(got, "gpu.health.exporter", "amd:5") is False
    assert value(got, "gpu.throttle.reasons", "amd:2") == ("thermal",)
    assert value(got, "gpu.power.draw", "amd:2") == 412, "the draw of the package, not the second series of it"
    assert value(got, "gpu.clock.graphics", "amd:2") == 1210
    assert value(got, "gpu.name", "amd:0") == "AMD Instinct MI300X OAM"
    assert value(got, "node.gpus.amd") == 8


def test_a_configured_prefix_and_prometheus_answer_say_the_same() -> None:
    def told(observations: list[Observation]) -> set[tuple[str, str, object]]:
        return {(o.fact, o.subject.id, o.value) for o in observations if o.fact != "node.gpus.amd"}

    plain = told(parse(FORMAT, NAME))
    prefixed = re.sub(r"(?m)^(gpu_|pcie_)", r"amd_\1", capture(NAME))
    assert FORMAT.sniff(prefixed) == 100
    assert told(FORMAT.parse(prefixed, CONTEXT)) == plain
    series = []
    for line in capture(NAME).splitlines():
        if found := re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2]))
            series.append({"metric": {"__name__": found[1], **labels}, "value": [1790000000, found[3]]})
    answer = json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}})
    assert prometheus_answer.sniff(answer) == 97
    assert told(prometheus_answer.parse(answer, CONTEXT)) == plain


def test_a_sleeping_gpu_counts_no_errors() -> None:
    text = re.sub(r"(?m)^(gpu_ecc_(?:un)?correct_total\{.*gpu_id=\"1\".*\}) 0$", r"\1 131070", capture(HEALTHY))
    assert status(FORMAT.parse(text, CONTEXT), "gpu.ras.uncorrected", "amd:1") is Status.FAILED


def test_recognition() -> None:
    assert FORMAT.sniff(capture(NAME)) == 100
    for other in ("dcgm/exporter-k8s.prom", "dcgm/gpu-exporter.prom", "vendor/amd-smi-metric.txt"):
        assert FORMAT.sniff(capture(other)) == 0, other
    assert FORMAT.sniff('gpu_health{gpu="0",host="a"} 1\n') == 0, "a series of anybody"


def test_provides_is_what_the_table_gives() -> None:
    table = {fact for m in metrics().all if m.exporter == "amd_device_metrics_exporter" for fact in m.facts()}
    assert table <= set(FORMAT.provides)


@given(st.integers(0, 10**6))
def test_any_cut_is_answered(at: int) -> None:
    check_cut(FORMAT, NAME, at)


@given(shuffled_lines([NAME]))
def test_any_text_is_answered(text: str) -> None:
    check_any(FORMAT, text)
