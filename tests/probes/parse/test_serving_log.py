"""Logs of inference servers: what their lines come to, and what is quiet."""

from __future__ import annotations

import pytest

from knowledge.observation import Event, Observation, Status
from probes.base import Context, lines_of
from probes.parse.serving_log import parse, sniff
from tests.cases import each
from tests.probes.parse.vocabulary_check import faults_of

SGLANG = "[2026-01-20 10:00:{:02d} TP0] Decode batch. #running-req: {}, #token: 31234, token usage: {:.2f}, cuda graph: True, gen throughput (token/s): {:.1f}, #queue-req: {},"
TRTLLM = (
    "[TRT-LLM] [I] [_torch][RANK 0] iter = {}, global_rank = 0, rank = 0, num_scheduled_requests = {}, kv_cache_util = 0.125, "
    "currank_total_requests = 1/8, host_step_time = 7.4ms, prev_device_step_time = 7.1ms, timestamp = 2026-08-04 19:08:13"
)
V1 = (
    "(APIServer pid=1) INFO 11-24 09:{:02d}:10 [loggers.py:118] Engine {:03d}: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: {:.1f} tokens/s, "
    "Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1f}%, Prefix cache hit rate: 12.3%"
)


def read(*lines: str) -> list[Observation]:
    text = "\n".join(lines)
    found = parse(lines_of(text), Context("server.log"))
    assert faults_of(found, instead=True) == []
    assert sniff(text) == 55
    return found


def troubles(*lines: str) -> list[str]:
    return [str(o.value.get("kind")) for o in read(*lines) if isinstance(o.value, Event)]


def test_the_last_hundred_requests_of_tgi_tell_its_queue() -> None:
    line = (
        '2026-11-25T02:{:02d}:{:02d}.841342Z  INFO generate{{parameters=GenerateParameters {{ best_of: None }} total_time="1.2s" validation_time="686.203µs" '
        'queue_time="{}" inference_time="1.1s" time_per_token="20.9ms" seed="None"}}: text_generation_router::server: router/src/server.rs:291: Success'
    )
    quiet = [line.format(i // 60, i % 60, ("41.2µs", "812.7ms", "3ms")[i % 3]) for i in range(120)]
    found = read(*(line.format(9, 9, "31.5s") for _ in range(30)), *quiet)
    assert value(found, "serving.queue_time.p95") == [0.8127]
    assert troubles(*quiet) == []
    assert troubles(*quiet, *(line.format(9, i, "7.5s") for i in range(20))) == ["queue_time"]


def value(found: list[Observation], fact: str) -> object:
    return [o.value for o in found if o.fact == fact and o.status is Status.OK]


def test_levels_are_those_of_the_last_line_and_of_each_engine() -> None:
    found = read(V1.format(1, 0, 210.3, 5, 0, 3.1), V1.format(1, 1, 10.0, 7, 2, 8.0), V1.format(2, 1, 12.0, 9, 0, 9.5))
    assert value(found, "serving.requests.running") == [5, 9]
    assert value(found, "serving.kv_cache.used.share") == [3.1, 9.5]
    assert {o.subject.id for o in found if o.fact == "serving.engine"} == {"vllm", "vllm engine 1"}
    assert value(found, "serving.log.waiting.most") == [0, 2]


def test_sglang_tells_shares_and_tensorrt_llm_no_queue() -> None:
    found = read(*(SGLANG.format(i, 20, 0.45, 1023.4, 0) for i in range(3)))
    assert value(found, "serving.kv_cache.used.share") == [45.0]
    assert value(found, "serving.tokens.output.rate") == [1023.4]
    found = read(*(TRTLLM.format(i, 8) for i in range(3)))
    assert value(found, "serving.requests.running") == [8]
    assert value(found, "serving.requests.waiting") == []
    assert value(found, "serving.kv_cache.used.share") == [12.5]


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ([SGLANG.format(i, 50, 0.99, 900.0, 5 * i) for i in range(20)], ["kv_full"]),
        ([SGLANG.format(i, 50, 0.99, 900.0, i % 2) for i in range(20)], []),
        ([V1.format(i, 0, 900.0, 256, 130 + i, 40.0) for i in range(20)], ["queue_at_limit"]),
        ([V1.format(i, 0, 900.0, 60 + 5 * (i % 3), 130 + i, 40.0) for i in range(20)], ["queue"]),
        ([V1.format(i, 0, 900.0, 60, 130 if i == 7 else 0, 40.0) for i in range(20)], []),  # one burst
    ],
)
def test_what_waits_counts_where_it_lasts(lines: list[str], kinds: list[str]) -> None:
    assert troubles(*lines) == kinds


def test_the_end_of_an_engine_has_an_echo_and_may_be_over() -> None:
    work = [V1.format(i, 0, 900.0, 6, 0, 9.0) for i in range(5)]
    end = [
        "(EngineCore_0 pid=2651) ERROR 11-24 09:19:39 [core.py:710] EngineCore encountered a fatal error.",
        "(APIServer pid=1) ERROR 11-24 09:19:39 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    ]
    [event] = [o.value for o in read(*work, *end) if isinstance(o.value, Event)]
    assert (event.get("kind"), event.get("went_on"), event.get("since")) == ("engine_died", False, "11-24 09:19:39")
    assert troubles(*end) == ["engine_died"]
    assert troubles(end[0].replace("encountered a fatal error", "failed to start"), end[1]) == ["engine_never_up"]
    [event] = [
        o.value for o in read(*work, *end, *(w.replace(" 09:", " 10:") for w in work)) if isinstance(o.value, Event)
    ]
    assert event.get("went_on") is True


NOT_LOADED = "E1130 08:00:10.000000 1 model_lifecycle.cc:638] failed to load 'llama' version 1: Internal: unable to load plan file: /models/llama/1/model.plan"
LOADED = "I1130 08:0{}:10.000000 1 model_lifecycle.cc:839] \"successfully loaded '{}'\""


@each(
    ("lines", "went_on"),
    [
        ([NOT_LOADED, "error: creating server: Internal - failed to load all models"], [False]),
        ([NOT_LOADED, LOADED.format(5, "tokenizer")], [False]),
        ([NOT_LOADED, LOADED.format(5, "llama")], [True]),
        ([LOADED.format(0, "llama"), "| llama | 1       | READY  |"], []),
        (["Unable to load the plan of the day: failed to load 'x'"], []),
    ],
)  # fmt: skip
def test_triton_tells_a_model_that_it_could_not_load(lines: list[str], went_on: list[bool]) -> None:
    found = [o.value for o in parse(lines_of("\n".join(lines)), Context("triton.log")) if isinstance(o.value, Event)]
    assert [(v.fields["engine"], v.fields["kind"]) for v in found] == [("Triton", "engine_never_up")] * len(went_on)
    assert [v.fields["went_on"] for v in found] == went_on


V0 = (
    "INFO 11-29 10:21:{:02d} [metrics.py:386] Avg prompt throughput: 990.1 tokens/s, Avg generation throughput: 288.9 tokens/s, "
    "Running: 109 reqs, Swapped: 0 reqs, Pending: {} reqs, GPU KV cache usage: {:.1f}%, CPU KV cache usage: 0.0%."
)


def test_two_lines_and_no_other_tell_a_full_cache() -> None:
    assert troubles(V0.format(33, 418, 99.4), V0.format(43, 455, 99.8)) == ["kv_full"]
    assert troubles(V0.format(33, 2, 99.4), V0.format(43, 0, 99.8)) == []
    assert troubles(V0.format(33, 0, 60.0), V0.format(43, 418, 99.4), V0.format(53, 455, 99.8)) == []


@each("counter", ("total_num_cumulative_preemption", "total_cumulative_preemption_cnt"))
def test_both_names_of_the_counter_of_preemptions_are_read(counter: str) -> None:
    line = f"WARNING 11-29 10:21:34 [scheduler.py:1640] Sequence group 8812 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. {counter}=2051"
    assert troubles(line) == ["preempted"]
