"""The serving collector and probe against real processes and real HTTP: ours, under the command lines of the real ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.collectors.serving import engine_of, listening, port_of
from probes.host import CallKind, RecordingHost, ReplayHost, Reply, listing
from probes.live import ProbeRequest
from probes.live.serving import DEVICES, MAIN, PROBE
from probes.live_host import LiveHost
from probes.parse.serving_snapshot import FORMAT
from tests.cases import each
from tests.components import cannot
from tests.probes.live.machine import NOBODY, collect, collector, need_nobody, tree
from tests.probes.parse.smi_case import CAPTURES, all_of, one, status, value
from tests.probes.parse.vocabulary_check import assert_in_vocabulary
from tests.serving_lab import Lab

PAGES = CAPTURES / "serving"
QUICK = ("--deadline", "5", "--between", "0.1")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.close()


def read(document: dict[str, Any]) -> list[Observation]:
    got = FORMAT.parse(json.dumps(document), Context("x"))
    assert_in_vocabulary(got, FORMAT)
    return got


def entry(document: dict[str, Any], pid: int) -> dict[str, Any]:
    (found,) = [one for one in document["servers"] if one["pid"] == pid]
    return dict(found)


def mine(document: dict[str, Any], *pids: int) -> dict[str, Any]:
    """Without servers that others run here."""
    return {**document, "servers": [one for one in document["servers"] if one["pid"] in pids]}


@pytest.mark.process
def test_a_server_is_found_and_read_twice(lab: Lab, tmp_path: Path) -> None:
    page = (PAGES / "vllm-healthy.prom").read_text()
    later = tmp_path / "later.prom"
    later.write_text(page.replace(" 1307500.0", " 1307900.0"))
    options = ("--max-num-seqs", "64", "--enforce-eager", "--api-key", "s3cret", "--served-model-name=x")
    pid, port = lab.serve("vllm", [PAGES / "vllm-healthy.prom", later], options=options, worker="1")
    document = collect("serving", *QUICK)
    found = entry(document, pid)
    assert found["options"] == {"--max-num-seqs": "64", "--enforce-eager": ""}, "only what is on the list, and no text"
    assert "s3cret" not in json.dumps(document)
    assert "process_resident_memory" not in json.dumps(document)
    assert (found["engine"], found["port"], len(found["pids"])) == ("vllm", port, 2)
    assert [r["status"] for r in found["readings"]] == [200, 200]
    got = read(mine(document, pid))
    subject = f"vllm on port {port}"
    assert value(got, "serving.requests.running", subject) == 12
    assert value(got, "serving.requests.limit", subject) == 64
    assert value(got, "serving.cuda_graphs.enabled", subject) is False
    assert value(got, "serving.port", subject) == port
    rate = value(got, "serving.tokens.output.rate", subject)
    assert isinstance(rate, float)
    first, last = (r["monotonic_ns"] for r in found["readings"])
    assert rate == pytest.approx(400 / ((last - first) / 1e9), abs=0.01)
    assert {o.value for o in all_of(got, "serving.process", subject)} == {f"process:{p}" for p in found["pids"]}
    assert value(got, "node.serving.servers") == 1
    assert "between two readings" in one(got, "serving.tokens.output.rate", subject).excerpt


@pytest.mark.process
def test_engines_are_known_by_their_command_lines(lab: Lab) -> None:
    pids = {
        engine: lab.serve(engine, [PAGES / f"{engine}-healthy.prom"])[0]
        for engine in ("vllm", "sglang", "triton", "tgi")
    }
    document = collect("serving", *QUICK)
    assert {entry(document, pid)["engine"]: pid for pid in pids.values()} == pids
    got = read(mine(document, *pids.values()))
    assert value(got, "node.serving.servers") == 4
    assert {o.value for o in all_of(got, "serving.engine")} == set(pids)
    assert len(all_of(got, "serving.batch.mean")) == 3, "two models of Triton and TGI"


@pytest.mark.process
@pytest.mark.parametrize(("mode", "state"), [("starting", "starting"), ("hang", "silent"), ("404", "no_metrics")])
def test_a_server_that_tells_nothing_says_what_it_does(lab: Lab, mode: str, state: str) -> None:
    pid, _ = lab.serve("sglang", mode=mode)
    got = read(mine(collect("serving", *QUICK), pid))
    assert value(got, "serving.state") == state
    assert value(got, "serving.engine") == "sglang"
    assert isinstance(value(got, "serving.age"), float)
    assert not all_of(got, "serving.requests.running")


@pytest.mark.process
@pytest.mark.parametrize(("mode", "why"), [("401", Status.DENIED), ("503", Status.FAILED), ("garbage", Status.FAILED)])
def test_an_answer_that_cannot_be_used_has_its_reason(lab: Lab, mode: str, why: Status) -> None:
    pid, _ = lab.serve("vllm", mode=mode)
    got = read(mine(collect("serving", *QUICK), pid))
    assert status(got, "serving.state") is why
    assert one(got, "serving.state").detail


@pytest.mark.process
def test_of_an_answer_that_breaks_off_half_a_line_is_not_read(lab: Lab) -> None:
    pid, _ = lab.serve("vllm", [PAGES / "vllm-healthy.prom"], mode="breaks")
    document = collect("serving", *QUICK)
    assert entry(document, pid)["readings"][0]["cut"] is True
    got = read(mine(document, pid))
    assert value(got, "serving.requests.running") == 12
    assert status(got, "serving.requests.waiting") is Status.UNSUPPORTED


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "word"), [(("--ssl-certfile", "/etc/x.pem"), "TLS"), (("--uds=/run/x",), "Unix socket")]
)
def test_a_server_that_cannot_be_asked_is_said_to_be_one(lab: Lab, options: tuple[str, ...], word: str) -> None:
    pid, _ = lab.serve("vllm", [PAGES / "vllm-healthy.prom"], options=options)
    found = one(read(mine(collect("serving", *QUICK), pid)), "serving.state")
    assert found.status is Status.FAILED
    assert word in found.detail


@pytest.mark.process
def test_chunks_and_ipv6_are_read(lab: Lab) -> None:
    page = PAGES / "sglang-healthy.prom"
    first, _ = lab.serve("sglang", [page], mode="chunked")
    try:
        second, _ = lab.serve("sglang", [page], v6="1")
    except AssertionError:
        cannot("ipv6", "there is no ::1 here")
    got = read(mine(collect("serving", *QUICK), first, second))
    assert [o.value for o in all_of(got, "serving.requests.running")] == [21, 21]


@pytest.mark.process
def test_a_main_thread_that_never_rests(lab: Lab) -> None:
    pid, port = lab.serve("vllm", [PAGES / "vllm-healthy.prom"], mode="burn")
    got = read(mine(collect("serving", "--deadline", "5", "--between", "0.5"), pid))
    used = value(got, "serving.frontend.cpu", f"vllm on port {port}")
    assert isinstance(used, float)
    assert 0 < used <= 1.2


@pytest.mark.process
def test_the_document_comes_by_the_deadline_whatever_the_server_does(lab: Lab) -> None:
    pid, _ = lab.serve("vllm", mode="hang")
    document = collect("serving", "--deadline", "4")
    assert entry(document, pid)["readings"][0]["hung"].endswith("/metrics")


@pytest.mark.process
def test_an_ordinary_user_asks_the_port_of_the_command_line(lab: Lab) -> None:
    python = need_nobody()
    pid, port = lab.serve("vllm", [PAGES / "vllm-healthy.prom"])
    hidden, _ = lab.serve("sglang", mode="starting")
    text = Path(collector("serving")[3]).read_text()
    done = subprocess.run(
        [*NOBODY, python, "-I", "-B", "-", *QUICK], input=text, capture_output=True, text=True, timeout=30, check=False
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert entry(document, pid)["guessed"] is True
    got = read(mine(document, pid, hidden))
    assert value(got, "serving.requests.running", f"vllm on port {port}") == 12
    denied = next(o for o in all_of(got, "serving.state") if o.subject.id.startswith("sglang"))
    assert denied.status is Status.DENIED
    assert "root" in denied.detail


@pytest.mark.process
def test_a_server_in_a_network_namespace_of_its_own(lab: Lab, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        cannot("netns", "a network namespace needs root, unshare and ip")
    made = subprocess.run(
        ["unshare", "-n", "ip", "link", "set", "lo", "up"], check=False, capture_output=True, timeout=20
    )
    if made.returncode:
        cannot("netns", "no network namespace can be made here")
    started = ["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
    pid, port = lab.serve("vllm", [PAGES / "vllm-healthy.prom"], before=started)
    document = collect("serving", *QUICK)
    assert value(read(mine(document, pid)), "serving.requests.running", f"vllm on port {port}") == 12


@pytest.mark.parametrize(
    "words",
    [
        ["tail", "-f", "/dev/null", "/var/log/vllm/serve.log"], ["grep", "-r", "vllm.entrypoints", "/tmp"], ["vim", "sglang/launch_server.py.bak"],
        ["pip", "install", "vllm"], ["python", "train.py", "--backend", "vllm"], ["python", "-c", "import vllm"], ["VLLM::EngineCore"],
        ["vllm", "bench", "throughput"], ["sh", "-c", "vllm serve m"], [], ["python3", "-m", "vllm.entrypoints.openai.run_batch"],
        ["vllm", "serve", "m", "--headless"], ["vllm", "serve", "m", "--node-rank=1"], ["vllm", "chat"],
        ["python3", "-m", "sglang.launch_server", "--nnodes", "2", "--node-rank", "1"], ["python3", "-m", "sglang.bench_serving"],
    ],
)  # fmt: skip
def test_what_only_looks_like_a_server_is_none(words: list[str]) -> None:
    assert engine_of(words) == ""


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (["/usr/bin/python3", "/usr/local/bin/vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"], "vllm"),
        (["vllm", "serve", "m", "--port", "9"], "vllm"),
        (["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"], "vllm"),
        (["python3", "-u", "-m", "sglang.launch_server", "--model-path", "m"], "sglang"),
        (["python3", "/sgl/python/sglang/launch_server.py"], "sglang"),
        (["python3", "-m", "vllm.entrypoints.api_server"], "vllm"),
        (["python3", "-m", "sglang.launch_server", "--node-rank", "0"], "sglang"),
        (["/opt/tritonserver/bin/tritonserver", "--model-repository=/models"], "triton"),
        (["text-generation-router", "--port", "80"], "tgi"),
    ],
)
def test_a_server_is_known_by_how_it_is_started(words: list[str], engine: str) -> None:
    assert engine_of(words) == engine


@pytest.mark.process
@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_it_runs_under_old_pythons(version: str, lab: Lab) -> None:
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    if not found:
        cannot(f"python{version}", f"there is no Python {version}")
    pid, _ = lab.serve("vllm", [PAGES / "vllm-healthy.prom"])
    done = subprocess.run(
        [str(found[-1]), "-I", "-B", *collector("serving")[3:], *QUICK], capture_output=True, text=True, timeout=30, check=False
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert entry(json.loads(done.stdout), pid)["readings"][1]["status"] == 200


# --- the probe --------------------------------------------------------------------------------


@pytest.mark.process
def test_without_an_accelerator_nothing_is_started() -> None:
    with LiveHost() as live:
        host = RecordingHost(live)
        if any(live.files(pattern) for pattern in DEVICES):
            pytest.skip("this machine has an accelerator")
        got = PROBE.collect(ProbeRequest(PROBE.deadline), host)
    assert {r.kind for r in host.replies} == {CallKind.LISTING, CallKind.FILE}
    assert {(o.fact, o.status) for o in got} == {(fact, Status.UNSUPPORTED) for fact in MAIN}
    assert_in_vocabulary(got, FORMAT)


@each("odd", ["²", "٣", "x", "", "9" * 5000])
def test_a_number_of_a_command_line_that_is_none(odd: str) -> None:
    start = ["python3", "-m", "vllm.entrypoints.openai.api_server"]
    assert port_of([*start, "--port", odd], "vllm") == 0
    assert engine_of([*start, "--node-rank", odd]) == "vllm"


def test_a_socket_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    row = "   {}: {} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {} 1 0 100 0 0 10 0\n"
    places = ("0100007F:1F40", "0100007F:", "xyz:1F41", ":1F42", "0100007F:xyz", "0100007F:1F43")
    rows = "".join(row.format(n, place, 70 + n) for n, place in enumerate(places))
    root = tree(tmp_path, {"proc/7/net/tcp": f"  sl  local_address rem_address   st\n{rows}"})
    found = listening(f"{root}/proc", 7)
    assert {8000, 8003} <= found.keys() <= {8000, 8002, 8003}
    assert found[8003] == ("75", "127.0.0.1")


@pytest.mark.process
def test_a_machine_below_a_root_is_looked_at_through_the_probe(lab: Lab, tmp_path: Path) -> None:
    _, port = lab.serve("vllm", [PAGES / "vllm-healthy.prom"])
    row = f"   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0"
    root = tree(
        tmp_path / "root",
        {
            "dev/nvidia0": "",
            "proc/uptime": "5000.00 9000.00\n",
            "proc/4242/cmdline": f"python3\0-m\0vllm.entrypoints.openai.api_server\0--port\0{port}\0--max-num-seqs\0"
            + "32\0",
            "proc/4242/stat": "4242 (python3) S 1 4242 4242 0 -1 4194560 1 0 0 0 5 5 0 0 20 0 9 0 100000 1 1",
            "proc/4242/net/tcp": f"  sl  local_address rem_address   st\n{row}\n",
        },
    )
    with LiveHost(root=str(root)) as live:
        host = RecordingHost(live)
        got = PROBE.collect(ProbeRequest(PROBE.deadline), host)
        again = PROBE.collect(ProbeRequest(PROBE.deadline), ReplayHost(host.name, host.replies, host.as_of))
    subject = f"vllm on port {port}"
    assert value(got, "serving.requests.running", subject) == 12
    assert value(got, "serving.requests.limit", subject) == 32
    assert one(got, "serving.process", subject).value == "process:4242"
    assert got == again


def test_a_recording_that_does_not_hold_it_says_so() -> None:
    got = PROBE.collect(ProbeRequest(PROBE.deadline), ReplayHost("n1", []))
    assert {(o.fact, o.status) for o in got} == {(fact, Status.NOT_ASKED) for fact in MAIN}


@pytest.mark.process
def test_a_recording_says_the_same(lab: Lab) -> None:
    pid, _ = lab.serve("vllm", [PAGES / "vllm-healthy.prom"])
    text = json.dumps(mine(collect("serving", *QUICK), pid))
    replies = [
        listing(DEVICES[0], ["/dev/nvidia0"]),
        Reply(CallKind.SNAPSHOT, ("serving",), data=text.encode(), exit_code=0),
    ]
    got = PROBE.collect(ProbeRequest(PROBE.deadline), ReplayHost("n1", replies))
    assert {o.subject.host for o in got} == {"n1"}
    assert isinstance(value(got, "serving.ttft.p95"), float)
    assert_in_vocabulary(got, FORMAT)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(CallKind.SNAPSHOT, ("serving",), Status.TIMEOUT, detail="no end after 4 s"), Status.TIMEOUT),
        (Reply(CallKind.SNAPSHOT, ("serving",), data=b'{"schema": "gpudiag/serving/1", "ser'), Status.FAILED),
    ],
)
def test_without_a_document_the_main_fact_says_why(reply: Reply, why: Status) -> None:
    host = ReplayHost("n1", [listing(DEVICES[0], ["/dev/nvidia0"]), reply])
    got = PROBE.collect(ProbeRequest(4.0), host)
    assert {(o.fact, o.status) for o in got} == {(fact, why) for fact in MAIN}


@pytest.mark.process
def test_a_collector_without_proc_says_so(tmp_path: Path) -> None:
    document = collect("serving", "--root", str(tmp_path))
    assert document["error"].startswith("ENOENT")
    assert status(read(document), "node.serving.servers") is Status.UNSUPPORTED


@pytest.mark.process
def test_the_time_of_the_document_is_the_time_of_its_facts(lab: Lab) -> None:
    before = time.time_ns()
    document = collect("serving", *QUICK)
    got = read(document)
    at = one(got, "node.serving.servers").at
    assert at is not None
    assert before <= at <= time.time_ns()
