"""Metrics pages of vLLM, SGLang, Triton and TGI as facts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Scope, Status
from probes.base import best
from probes.parse import dcgm_scrape, gpu_exporter_scrape
from probes.parse.serving_scrape import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import (
    CAPTURES,
    CONTEXT,
    all_of,
    capture,
    check_any,
    check_cut,
    one,
    parse,
    plain,
    shuffled_lines,
    status,
    value,
)
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

PAGES = sorted(f"serving/{path.name}" for path in (CAPTURES / "serving").glob("*.prom"))
SMALL = ["serving/triton-healthy.prom", "serving/triton-trtllm.prom", "serving/tgi-failing.prom"]


@each("name", PAGES)
def test_each_page_is_recognised_and_told_in_the_vocabulary(name: str) -> None:
    text = capture(name)
    found = best([FORMAT, dcgm_scrape.FORMAT, gpu_exporter_scrape.FORMAT], text[:65536])
    assert found is FORMAT
    got = parse(FORMAT, name)
    assert got
    assert {o.subject.scope for o in got} == {Scope.OBJECT}
    assert {o.subject.host for o in got} == {"node-a"}


@each(
    "text",
    [
        "", "vllm is slow", "# HELP up Whether it is up", 'up{job="vllm"} 1', "node_load1 0.3", 'go_info{version="1"} 1',
        "see vllm:num_requests_running in the page", "nv_gpu_utilization 0.4", "tgi 3", capture("dcgm/README.md")
        if (CAPTURES / "dcgm" / "README.md").is_file() else "DCGM_FI_DEV_GPU_TEMP 3",
    ],
)  # fmt: skip
def test_other_texts_are_not_taken_for_one(text: str) -> None:
    assert FORMAT.sniff(text) == 0


def test_a_busy_vllm_within_its_goals() -> None:
    got = parse(FORMAT, "serving/vllm-healthy.prom")
    assert {o.subject.id for o in got} == {"vllm Qwen/Qwen2.5-7B-Instruct"}
    assert (value(got, "serving.engine"), value(got, "serving.state")) == ("vllm", "answers")
    assert (value(got, "serving.requests.running"), value(got, "serving.requests.waiting")) == (12, 0)
    assert value(got, "serving.kv_cache.used.share") == 41.32
    assert value(got, "serving.kv_cache.size") == 27913 * 16
    assert value(got, "serving.prefix_cache.enabled") is True
    assert value(got, "serving.prefix_cache.hit.share") == pytest.approx(31.0, abs=0.1)
    assert (value(got, "serving.requests.finished"), value(got, "serving.preemptions")) == (5230, 0)
    assert value(got, "serving.requests.aborted.share") == pytest.approx(100 * 17 / 5230, abs=0.001)
    assert value(got, "serving.prompt.tokens.mean") == 680.0
    median, late = value(got, "serving.ttft.p50"), value(got, "serving.ttft.p95")
    assert isinstance(median, float)
    assert isinstance(late, float)
    assert 0.1 < median < 0.25 <= late < 0.5
    found = one(got, "serving.ttft.p95")
    assert found.source.line is not None
    assert "95 percent of 5230 since the server started" in found.excerpt
    assert (found.at, found.clock) == (None, Clock.NONE)
    assert not all_of(got, "serving.tokens.output.rate"), "one reading tells no rate"


def test_an_overloaded_vllm() -> None:
    got = parse(FORMAT, "serving/vllm-overloaded.prom")
    assert (value(got, "serving.requests.running"), value(got, "serving.requests.waiting")) == (87, 212)
    assert value(got, "serving.kv_cache.used.share") == 99.31
    assert value(got, "serving.preemptions.share") == pytest.approx(100 * 1904 / 7120, abs=0.001)
    assert value(got, "serving.requests.aborted.share") == pytest.approx(100 * 1403 / 7120, abs=0.001)
    for fact, low, high in (("ttft.p95", 20, 45), ("itl.p99", 0.3, 0.9), ("queue_time.share", 20, 40)):
        found = value(got, f"serving.{fact}")
        assert isinstance(found, float)
        assert low < found < high


def test_names_of_before_v1() -> None:
    got = parse(FORMAT, "serving/vllm-old.prom")
    assert value(got, "serving.kv_cache.used.share") == 22.11
    assert isinstance(value(got, "serving.itl.p50"), float)
    assert value(got, "serving.prefix_cache.enabled") is False
    assert not all_of(got, "serving.requests.failed"), "its page does not count them"


def test_an_idle_server_has_timed_nothing() -> None:
    got = parse(FORMAT, "serving/vllm-idle.prom")
    assert value(got, "serving.requests.finished") == 0
    for fact in (
        "ttft.p50",
        "ttft.p95",
        "itl.p99",
        "e2e.p95",
        "queue_time.p95",
        "preemptions.share",
        "requests.failed.share",
    ):
        assert status(got, f"serving.{fact}") is Status.NONE_SEEN


def test_data_parallel_engines_are_servers_of_their_own() -> None:
    got = parse(FORMAT, "serving/vllm-two-engines.prom")
    name = "vllm Qwen/Qwen2.5-7B-Instruct engine "
    assert {o.subject.id for o in got} == {name + "0", name + "1"}
    assert value(got, "serving.requests.waiting", name + "0") == 0
    assert value(got, "serving.requests.waiting", name + "1") == 64
    assert value(got, "serving.requests.failed", name + "1") == 41
    assert value(got, "serving.kv_cache.size", name + "1") == 27913 * 16


def test_a_sleeping_model() -> None:
    text = capture("serving/vllm-idle.prom").replace('sleep_state="awake"} 1.0', 'sleep_state="awake"} 0.0')
    assert value(FORMAT.parse(text, CONTEXT), "serving.state") == "asleep"


def test_sglang() -> None:
    got = parse(FORMAT, "serving/sglang-overloaded.prom")
    assert (value(got, "serving.requests.running"), value(got, "serving.requests.waiting")) == (162, 2826)
    assert value(got, "serving.kv_cache.used.share") == 98.0
    assert (value(got, "serving.preemptions"), value(got, "serving.requests.aborted")) == (310, 402)
    assert value(got, "serving.kv_cache.size") == 438021
    assert value(got, "serving.prefix_cache.hit.share") == pytest.approx(0.751, abs=0.001)
    assert isinstance(value(got, "serving.queue_time.p95"), float)


def test_triton_tells_its_models_apart() -> None:
    got = parse(FORMAT, "serving/triton-unbatched.prom")
    slow, sick = "triton resnet50", "triton bert_base"
    assert {o.subject.id for o in got} == {slow, sick}
    assert (value(got, "serving.batch.mean", slow), value(got, "serving.requests.waiting", slow)) == (1.0, 37)
    assert value(got, "serving.queue_time.share", slow) == pytest.approx(92.504)
    assert value(got, "serving.e2e.mean", slow) == 0.08
    assert (value(got, "serving.requests.failed", sick), value(got, "serving.requests.rejected", sick)) == (640, 410)
    assert status(got, "serving.ttft.p95", slow) is Status.UNSUPPORTED


def test_tritons_own_quantiles() -> None:
    # nv_inference_queue_summary_us{model="my_model",version="1",quantile="0.95"} 98
    text = capture("serving/triton-healthy.prom") + "".join(
        f'nv_inference_queue_summary_us{{model="resnet50",version="1",quantile="{q}"}} {v}\n'
        for q, v in (("0.5", 55), ("0.9", 97), ("0.95", 98), ("0.99", 101))
    )
    got = FORMAT.parse(text, CONTEXT)
    assert value(got, "serving.queue_time.p95", "triton resnet50") == 0.000098
    assert value(got, "serving.queue_time.p50", "triton resnet50") == 0.000055


def test_failures_of_an_older_triton_have_no_reason() -> None:
    text = 'nv_inference_request_success{model="m",version="1"} 75\nnv_inference_request_failure{model="m",version="1"} 25\n'
    got = FORMAT.parse(text, CONTEXT)
    assert value(got, "serving.requests.failed.share") == 25.0
    assert not all_of(got, "serving.requests.rejected")


def test_tensorrt_llm_within_triton() -> None:
    got = parse(FORMAT, "serving/triton-trtllm.prom")
    subject = "triton tensorrt_llm"
    assert [value(got, f"serving.requests.{n}", subject) for n in ("running", "waiting", "limit")] == [64, 41, 64]
    assert value(got, "serving.kv_cache.used.share", subject) == 62.0
    assert not all_of(got, "serving.requests.running", "triton ensemble")
    text = "\n".join(line for line in capture("serving/triton-trtllm.prom").splitlines() if '"fraction"' not in line)
    assert value(FORMAT.parse(text, CONTEXT), "serving.kv_cache.used.share", subject) == pytest.approx(62.0, abs=0.1)


def test_tgi() -> None:
    got = parse(FORMAT, "serving/tgi-failing.prom")
    assert {o.subject.id for o in got} == {"tgi"}
    assert (value(got, "serving.requests.failed"), value(got, "serving.requests.rejected")) == (120, 711)
    assert value(got, "serving.requests.aborted") == 180
    assert value(got, "serving.requests.finished") == 4125
    assert status(got, "serving.ttft.p50") is Status.UNSUPPORTED
    calm = parse(FORMAT, "serving/tgi-healthy.prom")
    assert value(calm, "serving.requests.failed") == 0, "a kind of failure is printed once it has happened"


# --- several readings -----------------------------------------------------------------------


def _later(text: str, **grown: float) -> str:
    """A page after some more happened: `grown` by the name of a series."""
    out = []
    for line in text.splitlines():
        name = line.split("{")[0].split(" ")[0]
        head, _, number = line.rpartition(" ")
        out.append(f"{head} {float(number) + grown[name]}" if name in grown and not line.startswith("#") else line)
    return "\n".join(out) + "\n"


def test_a_text_with_two_readings_tells_what_happened_in_between() -> None:
    page = capture("serving/triton-healthy.prom")
    after = _later(page, nv_inference_count=400, nv_inference_exec_count=400, nv_inference_request_success=400)
    got = FORMAT.parse(page + after, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert value(got, "serving.batch.mean", "triton resnet50") == 1.0, "since the start it is 5.6"
    assert "between two readings" in one(got, "serving.batch.mean", "triton resnet50").excerpt
    assert value(got, "serving.requests.finished", "triton resnet50") == 120800
    assert not all_of(got, "serving.requests.rate"), "how long it took is not told"


def test_of_little_in_between_nothing_is_concluded() -> None:
    page = capture("serving/triton-healthy.prom")
    got = FORMAT.parse(page + _later(page, nv_inference_count=3, nv_inference_exec_count=3), CONTEXT)
    assert value(got, "serving.batch.mean", "triton resnet50") == pytest.approx(5.6, abs=0.01)


def test_after_a_restart_only_the_later_reading_counts() -> None:
    page = capture("serving/vllm-overloaded.prom")
    new = capture("serving/vllm-healthy.prom").replace("Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-70B-Instruct")
    got = FORMAT.parse(page + new, CONTEXT)
    assert plain(o for o in got if o.fact.startswith(("serving.ttft", "serving.preemptions.share"))) == plain(
        o for o in FORMAT.parse(new, CONTEXT) if o.fact.startswith(("serving.ttft", "serving.preemptions.share"))
    )


def test_times_of_samples_give_rates() -> None:
    def page(count: int, at: int) -> str:
        return f'vllm:generation_tokens_total{{model_name="m"}} {count} {at}\nvllm:num_preemptions_total{{model_name="m"}} {count // 1000} {at}\n'

    got = FORMAT.parse(page(1000, 1_795_000_000_000) + page(5000, 1_795_000_002_000), CONTEXT)
    assert value(got, "serving.tokens.output.rate") == 2000.0
    assert value(got, "serving.preemptions.rate") == 2.0
    assert one(got, "serving.preemptions").at == 1_795_000_002_000 * 10**6


ROUTER = """\
# HELP vllm:num_requests_running Number of running requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{server="http://10.0.3.7:8000"} 0.0
vllm:num_requests_running{server="http://10.0.3.8:8000"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{server="http://10.0.3.7:8000"} 41.0
vllm:gpu_cache_usage_perc{server="http://10.0.3.7:8000"} 0.99
vllm:current_qps{server="http://10.0.3.7:8000"} 2.5
vllm:num_incoming_requests_total{model="m"} 812.0
vllm:routing_decisions_total{algorithm="roundrobin",decision="selected",reason="ok"} 5.0
vllm:output_tokens_total{model="m",server="http://10.0.3.7:8000"} 90210.0
vllm:request_latency_seconds_bucket{le="0.5",model="m",server="http://10.0.3.7:8000",status="200"} 7.0
"""


def test_a_router_is_no_engine() -> None:
    assert FORMAT.sniff(ROUTER) == 100
    got = FORMAT.parse(ROUTER, CONTEXT)
    assert_in_vocabulary(got, FORMAT)
    assert [(o.fact, o.subject.id, o.value, o.source.line) for o in got] == [
        ("serving.router.servers", "vllm router", 2, 3)
    ]


@pytest.mark.parametrize("router_first", [True, False])
def test_a_router_changes_nothing_of_an_engine_on_the_same_page(router_first: bool) -> None:
    engine = capture("serving/vllm-overloaded.prom")
    both = FORMAT.parse(ROUTER + engine if router_first else engine + ROUTER, CONTEXT)
    assert plain(o for o in both if o.fact != "serving.router.servers") == plain(FORMAT.parse(engine, CONTEXT))
    assert value(both, "serving.router.servers", "vllm router") == 2


def test_a_server_label_that_prometheus_added_makes_no_router() -> None:
    text = 'vllm:num_requests_running{model_name="m",server="prod"} 3\n'
    assert value(FORMAT.parse(text, CONTEXT), "serving.requests.running") == 3


def test_levels_that_held_need_two_readings() -> None:
    def page(waiting: float, running: int) -> str:
        rest = f'vllm:num_requests_waiting{{model_name="m"}} {waiting}\n'
        return f'vllm:num_requests_running{{model_name="m"}} {running}\n' + rest

    alone = FORMAT.parse(page(14, 0), CONTEXT)
    assert not [o for o in alone if o.fact.endswith((".least", ".most"))]
    got = FORMAT.parse(page(2, 3) + page(14, 0), CONTEXT)
    assert (value(got, "serving.requests.waiting.least"), value(got, "serving.requests.running.most")) == (2, 3)
    assert "2, then 14" in one(got, "serving.requests.waiting.least").excerpt
    odd = FORMAT.parse(page(float("nan"), 0) + page(14, 0), CONTEXT)
    assert not [o for o in odd if o.fact == "serving.requests.waiting.least"]


def test_no_number_is_no_level() -> None:
    text = 'vllm:kv_cache_usage_perc{model_name="m"} NaN\nvllm:num_requests_waiting{model_name="m"} -1\n'
    got = FORMAT.parse(text, CONTEXT)
    assert status(got, "serving.kv_cache.used.share") is Status.FAILED
    assert status(got, "serving.requests.waiting") is Status.FAILED
    assert status(got, "serving.requests.running") is Status.UNSUPPORTED


def test_names_that_nobody_should_see_are_cleaned() -> None:
    got = FORMAT.parse('vllm:num_requests_running{model_name="a\\nb\x1b[31m\u202e"} 1\n', CONTEXT)
    assert_in_vocabulary(got, FORMAT)


# --- laws -------------------------------------------------------------------------------------


@given(st.sampled_from(SMALL), st.integers(0, 10**6))
def test_a_cut_page_invents_nothing(name: str, at: int) -> None:
    check_cut(FORMAT, name, at)


@given(shuffled_lines(SMALL))
def test_any_lines_are_answered_for(text: str) -> None:
    check_any(FORMAT, text)
