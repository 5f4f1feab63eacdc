"""Inference servers end to end: from their pages, files or read here, to what is wrong with them and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.intent.parse import understand
from assistant.sources import parse_text
from knowledge.observation import Observation, Scope, Source, Subject, gpu, node
from knowledge.symptoms import symptoms
from probes.base import Context
from probes.parse import serving_scrape, serving_snapshot
from rules.engine import Finding, Role
from rules.loader import load
from rules.model import Severity
from tests.cases import each

PAGES = Path(__file__).parents[1] / "captures" / "serving"
HEALTHY = ["vllm-healthy", "vllm-idle", "vllm-old", "sglang-healthy", "triton-healthy", "tgi-healthy"]


def of_page(name: str) -> Diagnosis:
    return diagnose(serving_scrape.parse((PAGES / f"{name}.prom").read_text(), Context(f"{name}.prom", "n1")), load())


def of_server(name: str, more: list[Observation] | None = None, **fields: Any) -> Diagnosis:
    """The page of `name` as it would have been read here, twice."""
    lines = (PAGES / f"{name}.prom").read_text().splitlines()
    reading = {"call": "http://127.0.0.1:8000/metrics", "status": 200, "lines": lines}
    one = {"engine": name.partition("-")[0], "pid": 41, "pids": [41, 42], "port": 8000, "age": 90000.0, "options": {},
           "listens": [8000], "readings": [{**reading, "monotonic_ns": 0}, {**reading, "monotonic_ns": 10**9}]}  # fmt: skip
    document = {"schema": "gpudiag/serving/1", "host": "n1", "at_ns": 5, "hertz": 100, "servers": [one | fields]}
    return diagnose([*serving_snapshot.parse(json.dumps(document), Context("x", "n1")), *(more or [])], load())


def seen(fact: str, value: Any, on: Subject) -> Observation:
    return Observation(fact, on, value, source=Source("t", "t"))


def by_rule(d: Diagnosis) -> dict[str, Finding]:
    return {f.rule.id: f for f in d.findings}


def worst(d: Diagnosis) -> list[str]:
    return [f.rule.id for f in d.findings if f.severity.rank >= Severity.WARNING.rank]


@each("name", HEALTHY)
def test_nothing_above_info_on_a_healthy_server(name: str) -> None:
    assert worst(of_page(name)) == []
    assert worst(of_server(name)) == []
    assert (
        worst(of_server(name, ticks=[{"41": 100}, {"41": 130}], ticks_seconds=1.0, options={"--max-num-seqs": "256"}))
        == []
    )


@pytest.mark.parametrize("name", ["vllm-overloaded", "sglang-overloaded"])
def test_a_full_cache_is_the_cause_of_all_that_follows(name: str) -> None:
    d = of_page(name)
    found = by_rule(d)
    assert [rule for rule, f in found.items() if f.role is Role.ROOT] == ["serving-kv-cache-full"]
    assert {"serving-requests-queue", "serving-ttft-above-goal"} <= set(found)
    if name == "vllm-overloaded":
        assert {"serving-preemption-storm", "serving-clients-give-up", "serving-tokens-come-unevenly"} <= set(found)


def page_of(waiting: int, running: int, tokens: int, finished: int = 900) -> list[str]:
    counts = {"num_requests_waiting": waiting, "num_requests_running": running, "generation_tokens_total": tokens,
              "request_success_total": finished}  # fmt: skip
    return [f'vllm:{name}{{engine="0",model_name="m"}} {count}.0' for name, count in counts.items()]


def of_readings(*pages: list[str]) -> Diagnosis:
    readings = [{"call": "http://127.0.0.1:8000/metrics", "status": 200, "lines": lines, "monotonic_ns": i * 10**9}
                for i, lines in enumerate(pages)]  # fmt: skip
    return of_server("vllm-idle", readings=readings)


def test_an_engine_that_takes_nothing_in_two_readings_is_stalled() -> None:
    stuck = page_of(14, 0, 5000)
    assert "serving-engine-stalled" in by_rule(of_readings(stuck, stuck))
    assert "serving-engine-stalled" in by_rule(of_readings(page_of(9, 0, 5000), stuck)), "more came, none was taken"


@each(
    "first",
    [page_of(0, 0, 5000), page_of(14, 3, 5000), page_of(14, 0, 4990), None],
    ids=["came in between", "it ran in the first", "tokens were made", "one reading"],
)
def test_the_last_reading_alone_stalls_nobody(first: list[str] | None) -> None:
    last = page_of(14, 0, 5000)
    d = of_readings(*([first] if first else []), last)
    assert "serving-engine-stalled" not in by_rule(d)
    after_restart = of_readings(page_of(14, 0, 9000), last)
    assert "serving-engine-stalled" not in by_rule(after_restart), "what it counted before is gone"


def test_the_page_of_a_router_is_no_engine_at_its_limit() -> None:
    page = (PAGES / "vllm-overloaded.prom").read_text()
    labels = re.compile(r"\{[^}]*\}")
    gauges = [line for line in page.splitlines() if line.startswith(("vllm:num_requests", "vllm:kv_cache_usage"))]
    router = "\n".join(labels.sub('{server="http://10.0.3.7:8000"}', line) for line in gauges) + "\n"
    d = diagnose(serving_scrape.parse(router, Context("router.prom", "n1")), load())
    assert [f.rule.id for f in d.findings] == ["serving-page-of-router"]
    assert not [o for o in d.facts.observations if o.fact.startswith("serving.requests.")]


def test_each_sick_page_tells_its_own_story() -> None:
    assert set(worst(of_page("triton-trtllm"))) == {"serving-batch-limit-reached"}
    assert set(worst(of_page("vllm-two-engines"))) == {"serving-requests-fail"}
    unbatched = by_rule(of_page("triton-unbatched"))
    assert unbatched["serving-requests-not-batched"].subject.id == "triton resnet50"
    assert unbatched["serving-requests-fail"].subject.id == "triton bert_base"
    assert {"serving-requests-queue", "serving-requests-refused", "serving-requests-fail"} <= set(
        worst(of_page("tgi-failing"))
    )


def test_a_hot_gpu_of_a_server_is_why_its_tokens_are_slow() -> None:
    hot, engine = gpu("0000:3b:00.0", "n1"), Subject(Scope.PROCESS, "42", node("n1"))
    more = [
        seen("process.uses_gpu", "gpu:0000:3b:00.0", engine), seen("gpu.clock.event.hw_thermal", True, hot),
        seen("gpu.clock.event.hw_power_brake", False, hot),
    ]  # fmt: skip
    found = by_rule(of_server("vllm-overloaded", more))
    assert found["job-on-slowed-gpu"].subject == engine
    slow = found["serving-itl-above-goal"]
    assert slow.role is Role.SYMPTOM
    assert found["job-on-slowed-gpu"].id in slow.explained_by


def test_a_front_end_at_its_limit_with_a_gpu_that_has_time() -> None:
    idle, engine = gpu("0000:3b:00.0", "n1"), Subject(Scope.PROCESS, "42", node("n1"))
    more = [seen("process.uses_gpu", "gpu:0000:3b:00.0", engine), seen("gpu.utilization.core", 31, idle)]
    d = of_server("vllm-healthy", more, ticks=[{"41": 100}, {"41": 199}], ticks_seconds=1.0)
    found = by_rule(d)["serving-frontend-saturated"]
    assert found.grade == "confirmed"
    assert worst(d) == ["serving-frontend-saturated"]


@each(
    ("fields", "rule"),
    [
        ({"readings": [], "listens": [], "age": 60.0}, "serving-server-starting"),
        ({"readings": [], "listens": [], "age": 7200.0}, "serving-server-never-came-up"),
        ({"readings": [{"call": "x", "hung": "x", "seconds": 1.0}]}, "serving-server-silent"),
        ({"readings": [{"call": "x", "status": 404, "lines": []}]}, "serving-metrics-off"),
        ({"options": {"--enforce-eager": ""}}, "serving-cuda-graphs-off"),
    ],
)
def test_what_a_server_does_instead_of_working(fields: dict[str, Any], rule: str) -> None:
    assert [f.rule.id for f in of_server("vllm-healthy", **fields).findings] == [rule]


@pytest.mark.parametrize(
    "fields", [{"readings": [], "listens": [], "guessed": True}, {"readings": [{"call": "x", "status": 401}]}]
)
def test_a_server_that_could_not_be_read_is_not_called_healthy_or_sick(fields: dict[str, Any]) -> None:
    assert of_server("vllm-healthy", **fields).findings == ()


@each(
    "said",
    [
        "vLLM is slow", "TTFT is high on our llama endpoint", "sglang is slow on gpu-3", "kv cache is full",
        "requests pile up in the queue", "首 token 延迟高", "推理服务很慢", "vllm 很慢", "prefill blocks decode",
    ],
)  # fmt: skip
def test_words_of_operators_lead_there(said: str) -> None:
    query = understand(said)
    assert query.symptoms[:1] == ("slow-serving",)


@each("said", ["train.py is slow", "training is slow", "vllm runs out of memory", "训练很慢"])
def test_other_words_do_not(said: str) -> None:
    assert "slow-serving" not in understand(said).symptoms


def test_each_rule_of_servers_is_behind_the_symptom() -> None:
    ours = {r.id for r in load().rules if r.id.startswith("serving-")}
    assert len(ours) >= 14
    assert ours <= symptoms()["slow-serving"].rules


ILLEGAL = "[{} TP1] Scheduler hit an exception: Traceback (most recent call last):\nRuntimeError: CUDA error: an illegal memory access was encountered\n"
ASSERT = "[{} TP1] Scheduler hit an exception: Traceback (most recent call last):\nRuntimeError: CUDA error: device-side assert triggered\n"
WATCHDOG = "[2025-11-20 01:07:03 TP3] Watchdog timeout (self.watchdog_timeout=300)\n"


@each(
    ("text", "causes"),
    [
        (ILLEGAL.format("2025-11-20 01:02:03") + WATCHDOG, {"cuda-illegal-access"}),
        (ASSERT.format("2025-11-20 01:02:03") + WATCHDOG, {"cuda-device-assert"}),
        (WATCHDOG + "[2025-11-20 01:17:03 TP1] RuntimeError: CUDA error: an illegal memory access was encountered\n", set()), (WATCHDOG, set()),
    ],
)  # fmt: skip
def test_the_watchdog_of_a_server_is_what_follows_an_earlier_error(text: str, causes: set[str]) -> None:
    d = diagnose(parse_text("log", text), load())
    timed_out = by_rule(d)["serving-watchdog-timeout"]
    assert {f.rule.id for f in d.findings if f.id in timed_out.explained_by} == causes
