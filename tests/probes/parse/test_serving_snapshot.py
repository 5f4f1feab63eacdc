"""The parser of the serving snapshot: what the collector's document says of servers, and why where it says nothing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse.serving_snapshot import FORMAT
from tests.cases import each
from tests.probes.parse.smi_case import CONTEXT, all_of, capture, one, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

SECOND = 10**9


def document(*servers: Any, **more: Any) -> str:
    plain = {
        "schema": "gpudiag/serving/1",
        "host": "n7",
        "at_ns": 5,
        "hertz": 100,
        "looked_at": 90,
        "servers": list(servers),
    }
    return json.dumps(plain | more, indent=1)


def answer(lines: list[str], at: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "call": "http://127.0.0.1:8000/metrics",
        "at_ns": 7,
        "monotonic_ns": at,
        "status": 200,
        "lines": lines,
        **more,
    }


def server(*readings: dict[str, Any], **more: Any) -> dict[str, Any]:
    plain = {
        "engine": "vllm",
        "pid": 41,
        "pids": [41, 42],
        "age": 900.5,
        "options": {},
        "port": 8000,
        "listens": [8000],
    }
    return plain | {"readings": list(readings)} | more


def page(waiting: int = 3, tokens: int = 1000, preempted: int = 0) -> list[str]:
    return [
        "# TYPE vllm:num_requests_waiting gauge",
        f'vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}.0',
        f'vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}.0',
        f'vllm:num_preemptions_total{{engine="0",model_name="m"}} {preempted}.0',
    ]


def read(*servers: Any, **more: Any) -> list[Observation]:
    got = FORMAT.parse(document(*servers, **more), Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def test_it_is_known_by_its_schema_alone() -> None:
    assert FORMAT.sniff(document()) == 100
    for other in (
        "",
        "{}",
        document().replace("serving", "services"),
        f"seen: {document()}",
        capture("serving/tgi-healthy.prom"),
    ):
        assert FORMAT.sniff(other) == 0


def test_no_server_is_an_answer() -> None:
    got = read()
    assert value(got, "node.serving.servers") == 0
    assert len(got) == 1


def test_who_sees_only_some_processes_does_not_say_that_there_is_none() -> None:
    found = one(read(kernel=False), "node.serving.servers")
    assert found.status is Status.DENIED
    assert value(read(server(answer(page())), kernel=False), "node.serving.servers") == 1
    assert value(read(kernel=True), "node.serving.servers") == 0


def test_two_readings_give_rates() -> None:
    got = read(server(answer(page(), 0), answer(page(5, 3000, 4), 2 * SECOND)))
    subject = "vllm on port 8000"
    assert value(got, "serving.requests.waiting", subject) == 5
    assert value(got, "serving.tokens.output.rate", subject) == 1000.0
    assert value(got, "serving.preemptions.rate", subject) == 2.0
    assert value(got, "serving.model", subject) == "m"
    found = one(got, "serving.requests.waiting", subject)
    assert (str(found.source), found.at, found.subject.host) == ("http://127.0.0.1:8000/metrics", 5, "n7")
    assert found.excerpt.startswith("vllm:num_requests_waiting{")
    assert value(got, "serving.age", subject) == 900.5
    assert {o.value for o in all_of(got, "serving.process", subject)} == {"process:41", "process:42"}


def test_one_reading_gives_levels_and_no_rates() -> None:
    got = read(server(answer(page())))
    assert value(got, "serving.requests.waiting") == 3
    assert not [o for o in got if o.fact.endswith(".rate")]


def test_two_models_of_one_port_are_two_subjects() -> None:
    more = [line.replace('"m"', '"n"') for line in page(9)]
    got = read(server(answer([*page(), *more])))
    assert value(got, "serving.requests.waiting", "vllm on port 8000 m") == 3
    assert value(got, "serving.requests.waiting", "vllm on port 8000 n") == 9


@each(
    ("one_", "state"),
    [
        (server(readings=[], listens=[]), "starting"),
        (server({"call": "http://127.0.0.1:8000/metrics", "hung": "x", "seconds": 1.0}), "silent"),
        (server({"call": "x", "status": 404, "lines": []}), "no_metrics"),
        (server({"call": "x", "status": 200, "lines": []}), "no_metrics"),
        (server({"call": "x", "status": 200, "lines": ["sglang:num_queue_reqs 1"]}), "no_metrics"),
    ],
)
def test_without_a_page_the_state_says_what_it_does(one_: dict[str, Any], state: str) -> None:
    got = read(one_)
    assert value(got, "serving.state", "vllm on port 8000") == state
    assert value(got, "serving.engine") == "vllm"


@each(
    ("one_", "why", "word"),
    [
        (server(readings=[], listens=[], guessed=True), Status.DENIED, "root"),
        (
            server(readings=[], error="EPERM: Operation not permitted (its network namespace)"),
            Status.DENIED,
            "namespace",
        ),
        (server({"call": "x", "status": 401, "lines": []}), Status.DENIED, "key"),
        (server({"call": "x", "status": 503, "lines": []}), Status.FAILED, "503"),
        (server({"call": "x", "error": "ECONNREFUSED: Connection refused"}), Status.FAILED, "refused"),
        (server(readings=[]), Status.FAILED, "not asked"),
    ],
)
def test_or_why_that_is_not_known(one_: dict[str, Any], why: Status, word: str) -> None:
    found = one(read(one_), "serving.state")
    assert found.status is why
    assert word in found.detail


@each(
    ("options", "fact", "expected"),
    [
        ({"--max-num-seqs": "64"}, "requests.limit", 64),
        ({"--max-running-requests": "128"}, "requests.limit", 128),
        ({"--enforce-eager": ""}, "cuda_graphs.enabled", False),
        ({"--disable-cuda-graph": ""}, "cuda_graphs.enabled", False),
        ({"--chunked-prefill-size": "-1"}, "chunked_prefill.enabled", False),
        ({"--chunked-prefill-size": "8192"}, "chunked_prefill.enabled", True),
        ({"--enable-chunked-prefill": ""}, "chunked_prefill.enabled", True),
        ({"--enable-chunked-prefill": "False"}, "chunked_prefill.enabled", False),
        ({"--no-enable-chunked-prefill": ""}, "chunked_prefill.enabled", False),
        ({"--max-num-seqs": ""}, "requests.limit", None),
        ({"--enforce-eager": "false"}, "cuda_graphs.enabled", None),
        ({}, "chunked_prefill.enabled", None),
    ],
)
def test_what_the_command_line_says(options: dict[str, str], fact: str, expected: object) -> None:
    found = all_of(read(server(answer(page()), options=options)), f"serving.{fact}")
    assert [o.value for o in found] == ([] if expected is None else [expected])


def test_the_busiest_front_end_counts() -> None:
    got = read(server(answer(page()), ticks=[{"41": 1000, "42": 50}, {"41": 1010, "42": 148}], ticks_seconds=1.0))
    assert value(got, "serving.frontend.cpu") == 0.98
    assert str(one(got, "serving.frontend.cpu").source) == "/proc/42/task/42/stat"
    for odd in ([{"41": 5}], [{"41": 5}, {"41": 4}], [{"41": "x"}, {"41": 4}], "x", [{"4\u0661": 1}, {"4\u0661": 2}]):
        assert not all_of(read(server(answer(page()), ticks=odd, ticks_seconds=1.0)), "serving.frontend.cpu")


def test_a_cut_document_and_an_error_have_their_reasons() -> None:
    assert status(FORMAT.parse(document()[:-30], CONTEXT), "node.serving.servers") is Status.FAILED
    found = read(servers=None, error="EACCES: Permission denied")
    assert status(found, "node.serving.servers") is Status.DENIED


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("engine", "pid", "pids", "port", "readings", "options", "ticks", "ticks_seconds", "age", "listens", "error")


@given(st.sampled_from(FIELDS), ODD, st.sampled_from(["lines", "status", "call", "hung", "monotonic_ns", "error"]), ODD)
def test_whatever_stands_in_a_field_is_survived(field: str, odd: Any, inner: str, other: Any) -> None:
    one_ = server(answer(page(), 0), answer(page(5), SECOND), ticks=[{"41": 1}, {"41": 2}], ticks_seconds=1.0)
    one_["readings"][1][inner] = other
    one_[field] = odd
    read(one_)
