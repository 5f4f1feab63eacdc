"""The collector `processes` as a child process: real processes on this machine, as root and as nobody, and recorded trees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Scope, Status, Subject, node
from probes.collectors import processes as collector
from probes.host import CallKind, ReplayHost, Reply
from probes.live import ProbeRequest
from probes.live.processes import ALWAYS, PROBE
from probes.parse.processes_snapshot import FORMAT
from tests.cases import each
from tests.components import cannot
from tests.probes.capture.real_processes import in_state
from tests.probes.collectors.collecting import collect, document, read, told
from tests.probes.collectors.process_tree import Tree, ranks
from tests.probes.live.machine import need_mounts

HERE = node("gpu-1")
# A /dev in which /dev/nvidia0 can be opened though there is no GPU; nobody else sees it.
DEVICES = (
    "mount -t tmpfs none /dev; for d in null nvidia0 nvidiactl nvidia-uvm; do mknod -m 666 /dev/$d c 1 3; done; "
    'exec 8</dev/nvidia0 9</dev/nvidia-uvm; exec "$@"'
)
SLEEP = [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(60)"]


def process(pid: int) -> Subject:
    return Subject(Scope.PROCESS, str(pid), HERE)


def detail(found: dict[str, Any], pid: int) -> dict[str, Any]:
    return next(d for d in found["details"] if d["pid"] == pid)


@contextmanager
def running(argv: Sequence[str], *, env: dict[str, str] | None = None, wait: bool = True) -> Iterator[int]:
    """A child that lives as long as the block, once it has said that it is ready."""
    child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stdin=subprocess.PIPE, start_new_session=True)
    try:
        assert child.stdout is not None
        if wait:
            assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def on_gpu(argv: Sequence[str], **more: Any) -> Any:
    """A child that holds the device files of a GPU."""
    need_mounts()
    return running(["unshare", "-m", "--propagation", "private", "sh", "-euc", DEVICES, "sh", *argv], **more)


# --- real processes -----------------------------------------------------------------------


@pytest.mark.process
def test_a_rank_on_a_gpu(tmp_path: Path) -> None:
    secret = {"HF_TOKEN": "hf_verysecretverysecret", "DB_PASSWORD": "hunter2", "PATH": os.environ["PATH"]}
    env = {**secret, "RANK": "3", "LOCAL_RANK": "3", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1",
           "MASTER_PORT": "29500", "NCCL_DEBUG": "INFO", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}  # fmt: skip
    with on_gpu([*SLEEP, "--token", "hunter2", "--lr=1e-4"], env=env) as pid:
        text = collect("processes", None)
    assert "hunter2" not in text
    assert "verysecret" not in text
    assert "10.96.0.1" not in text
    found = document(text)
    one = detail(found, pid)
    assert one["environ"]["NCCL_DEBUG"] == "INFO"
    assert one["environ"]["KUBERNETES_SERVICE_HOST"] is True
    assert not {"HF_TOKEN", "DB_PASSWORD", "PATH"} & set(one["environ"])
    assert one["cmdline"][-3:] == ["--token", "***", "--lr=1e-4"]
    assert set(one["devices"]) == {"/dev/nvidia0", "/dev/nvidia-uvm"}
    facts = told(read(FORMAT, text))
    assert facts["process.opens_gpu", process(pid)] == "gpu:minor:0"
    assert facts["process.computes", process(pid)] is True
    assert facts["process.user", process(pid)] == "root"
    assert facts["process.in_job", process(pid)] == "job:10.0.0.1:29500"
    job = Subject(Scope.JOB, "10.0.0.1:29500", HERE)
    assert facts["rank.is_process", Subject(Scope.RANK, "3", job)] == f"process:{pid}"
    assert facts["job.ranks.missing_here", job] == 7
    assert facts["job.spans_nodes", job] is False
    assert facts["process.contained_by", process(pid)] in ("mount_namespace", Status.DENIED)


@pytest.mark.process
def test_a_busy_process_and_its_share_of_a_core() -> None:
    with running([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"]) as pid:
        for _ in range(8):  # where others hold the CPUs it may not get one while it is looked at
            facts = told(read(FORMAT, collect("processes", None)))
            if facts.get(("process.cpu", process(pid)), 0) > 0.1:
                break
    assert 0.1 < facts["process.cpu", process(pid)] < 1.1
    assert facts["process.state", process(pid)] == "running"
    assert facts["process.threads", process(pid)] == 1
    assert 0 <= facts["process.runqueue.wait", process(pid)] <= 100
    assert facts["process.switches", process(pid)] >= 0
    assert facts["process.age", process(pid)] < 60


@pytest.mark.process
def test_a_process_that_was_asked_for() -> None:
    with running(SLEEP) as pid:
        facts = told(read(FORMAT, collect("processes", None, "--pid", str(pid), "--pid", "4194303")))
    assert "time.sleep(60)" in facts["process.command", process(pid)]
    assert facts["process.parent", process(pid)] == os.getpid()
    assert facts["process.io.read", process(pid)] >= 0
    assert facts["process.executable_deleted", process(pid)] is False
    assert facts["process.limit.files", process(pid)] > 0
    assert facts["process.opens_gpu", process(pid)] is Status.NONE_SEEN
    assert facts["process.in_job", process(pid)] is Status.NONE_SEEN
    assert ("process.comm", process(4194303)) not in facts


@pytest.mark.process
def test_a_pid_namespace_of_its_own() -> None:
    need_mounts()
    argv = ["unshare", "--pid", "--fork", "--kill-child", *SLEEP]
    with running(argv) as outside:
        found = document(collect("processes", None))
        inner = next(row[0] for row in found["processes"] if row[1] == outside)
        one = detail(document(collect("processes", None, "--pid", str(inner))), inner)
    assert one["status"]["NSpid"].split() == [str(inner), "1"]
    assert one["namespaces"]["pid"] != found["reader"]["pid_namespace"]


@pytest.mark.process
def test_a_zombie() -> None:
    code = "import os, time\npid = os.fork()\nif pid == 0: os._exit(0)\nprint('ready', flush=True)\ntime.sleep(60)"
    with running([sys.executable, "-c", code]) as pid:
        found = document(collect("processes", None))
        dead = [row[0] for row in found["processes"] if row[1] == pid and row[4] == "Z"]
        facts = told(read(FORMAT, json.dumps(found)))
    assert len(dead) == 1
    assert facts["process.state", process(dead[0])] == "zombie"
    assert facts["process.opens_gpu", process(dead[0])] is Status.NONE_SEEN
    assert facts["node.processes.zombie", HERE] >= 1


@pytest.mark.process
def test_a_thread_that_outlives_its_main_thread_keeps_the_gpu() -> None:
    code = (
        "import ctypes, threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print('ready', flush=True)\nctypes.CDLL(None).pthread_exit(None)"
    )
    with on_gpu([sys.executable, "-c", code]) as pid:
        in_state(pid, "Z")
        facts = told(read(FORMAT, collect("processes", None)))
    assert facts["process.state", process(pid)] == "zombie"
    assert facts["process.opens_gpu", process(pid)] == "gpu:minor:0"


@pytest.mark.process
def test_a_process_in_state_d_on_a_gpu(tmp_path: Path, require: Callable[[str], str]) -> None:
    """vfork(2) leaves the parent in an uninterruptible sleep until the child has ended."""
    source = tmp_path / "stuck.c"
    source.write_text(
        '#define _GNU_SOURCE\n#include <unistd.h>\nint main(void) { write(1, "ready\\n", 6);\n'
        "if (vfork() == 0) { sleep(200); _exit(0); } return 0; }\n"
    )
    program = tmp_path / "stuck"
    subprocess.run([require("cc"), "-o", program, source], check=True)
    with on_gpu([str(program)]) as pid:
        text = collect("processes", None)
    facts = told(read(FORMAT, text))
    assert facts["process.state", process(pid)] == "blocked"
    assert facts["process.blocked_for", process(pid)] >= 1.5
    assert facts["process.wait_channel", process(pid)] not in (None, "")
    assert facts["process.blocked_in", process(pid)] in ("kernel", Status.DENIED)


@pytest.mark.process
def test_as_nobody_what_is_denied_is_said() -> None:
    if os.geteuid() != 0:
        cannot("nobody", "another user needs root")
    with running(SLEEP) as pid:
        facts = told(found := read(FORMAT, collect("processes", None, "--pid", str(pid), uid=65534)))
    assert facts["process.comm", process(pid)].startswith("python")
    assert facts["process.user", process(pid)] == "root"
    for fact in ("process.env", "process.in_job", "process.opens_gpu", "process.io.read", "process.executable_deleted"):
        assert facts[fact, process(pid)] is Status.DENIED, fact
    assert facts["node.processes.on_gpu", HERE] is Status.DENIED
    reasons = [o.detail for o in found if o.status is Status.DENIED]
    assert all("sudo gpudiag check" in why for why in reasons), reasons


@pytest.mark.process
def test_nobody_sees_its_own() -> None:
    if os.geteuid() != 0:
        cannot("nobody", "another user needs root")
    argv = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/env",
        "sh",
        "-c",
        "echo ready; sleep 60",
    ]
    with running(
        argv, env={"PATH": os.environ["PATH"], "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "h", "MASTER_PORT": "1"}
    ) as pid:
        facts = told(read(FORMAT, collect("processes", None, "--pid", str(pid), uid=65534)))
    assert facts["process.in_job", process(pid)] == "job:h:1"
    assert facts["process.opens_gpu", process(pid)] is Status.NONE_SEEN


@pytest.mark.process
def test_the_check_itself_is_left_out() -> None:
    """This test is what started the collector: neither it nor its other child is told of."""
    with running([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"]) as pid:
        found = document(collect("processes", None, "--skip-family"))
    assert {os.getpid(), pid}.isdisjoint({d["pid"] for d in found["details"]})


@each(
    ("text", "expected"), [("90.5 1.0\n", 90.5), ("x y\n", None), ("\n", None), ("", None), ({"error": "EACCES"}, None)]
)
def test_an_uptime_that_is_no_number_is_none(text: Any, expected: float | None) -> None:
    assert collector.seconds_of(text) == expected


def test_a_user_whose_number_is_none_is_nobody(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(f"a:x:²:\nb:x:٣:\nc:x:{'9' * 5000}:\nd:x:3:\ne:x\n")
    assert collector.users_of(collector.Reading(str(tmp_path)), {2, 3}) == {"3": "d"}


@each(
    ("text", "expected"),
    [("rchar: 12\nwchar: 3\n", {"rchar": 12, "wchar": 3}), (f"rchar: {'9' * 5000}\nwchar: \n", {})],
)
def test_counters_that_are_no_numbers_are_left_out(text: str, expected: dict[str, int]) -> None:
    assert collector.io_of(text) == expected


# --- recorded trees -----------------------------------------------------------------------


def look(tree: Tree, *args: str, deadline: float = 4) -> tuple[list[Observation], dict[tuple[str, Subject], Any]]:
    found = read(FORMAT, collect("processes", tree.root, "--interval", "0.1", *args, deadline=deadline))
    return found, told(found)


@pytest.mark.process
def test_a_job_on_a_node_of_eight(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    pids = ranks(tree, 8)
    for i in range(8):
        tree.gpu(f"0000:{0x1B + i:02x}:00.0", i)
    _, facts = look(tree)
    job = Subject(Scope.JOB, "127.0.0.1:29500", HERE)
    assert facts["job.ranks", job] == facts["job.ranks.here", job] == 8
    assert facts["job.ranks.missing_here", job] == 0
    assert facts["job.env.differing", job] == 0
    assert facts["job.cpus_per_rank", job] == 12.0
    assert facts["job.name", job] == "train.py"
    assert facts["job.user", job] == facts["process.user", process(pids[0])] == "root"  # who owns the recorded folders
    assert facts["process.opens_gpu", process(pids[3])] == "gpu:0000:1e:00.0"
    assert facts["gpu.minor", Subject(Scope.GPU, "0000:1e:00.0", HERE)] == 3
    assert facts["process.adopted", process(pids[0])] is False
    assert facts["node.processes.on_gpu", HERE] == 8
    assert facts["node.processes.view", HERE] == "whole"


@pytest.mark.process
def test_a_command_line_that_hangs_does_not_hang_the_collector(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    pids = ranks(tree, 2)
    tree.hang(f"proc/{pids[1]}/cmdline")
    found, facts = look(tree)
    assert facts["process.lock_stuck", process(pids[1])] is True
    assert facts["process.lock_stuck", process(pids[0])] is False
    assert facts["process.command", process(pids[1])] is Status.TIMEOUT
    assert facts["process.env", process(pids[1])] is Status.TIMEOUT
    why = next(o.detail for o in found if o.fact == "process.command" and o.subject == process(pids[1]))
    assert f"/proc/{pids[1]}/cmdline" in why
    assert facts["process.env", process(pids[0])]


@pytest.mark.process
def test_a_table_that_hangs_ends_at_the_deadline(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.hang("proc/uptime")
    found, _ = look(tree, deadline=1)
    assert {o.fact: o.status for o in found} == dict.fromkeys(PROBE.main, Status.TIMEOUT)


@pytest.mark.process
def test_a_driver_file_that_hangs_is_said(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    pids = ranks(tree, 1)
    tree.hang("proc/driver/nvidia/gpus/0000:1b:00.0/information")
    found, facts = look(tree)
    assert facts["process.opens_gpu", process(pids[0])] == "gpu:minor:0"
    assert [(o.status, "0000:1b:00.0" in o.detail) for o in found if o.fact == "gpu.minor"] == [(Status.TIMEOUT, True)]


@pytest.mark.process
def test_no_proc_at_all(tmp_path: Path) -> None:
    found = read(FORMAT, collect("processes", tmp_path, deadline=2))
    assert {o.fact: o.status for o in found} == dict.fromkeys(PROBE.main, Status.UNSUPPORTED)


@pytest.mark.process
def test_a_thread_of_a_rank_that_is_stuck_in_the_driver(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    stack = "[<0>] os_acquire_rwlock_write+0x35/0x50 [nvidia]\n[<0>] rm_ioctl+0x7d/0x400 [nvidia]\n"
    tree.process(4000, "python3", opens=["/dev/nvidia-uvm", "/dev/nvidia0"], stack=stack, wchan="0",
                 threads={4007: ("D", "9000 0 7"), 4008: ("S", "1 1 1")})  # fmt: skip
    _, facts = look(tree, deadline=6)
    assert facts["process.state", process(4000)] == "sleeping"
    assert facts["process.blocked_for", process(4000)] >= 1.5
    assert facts["process.blocked_in", process(4000)] == "nvidia"
    assert facts["process.wait_channel", process(4000)] == "os_acquire_rwlock_write"


@pytest.mark.process
def test_forked_workers_get_a_line(tmp_path: Path) -> None:
    """What a rank forks inherits its descriptors: hundreds of data loaders are not each looked into."""
    tree = Tree(tmp_path)
    pids = ranks(tree, 2)
    for i in range(40):
        tree.process(5000 + i, "pt_data_worker", ppid=pids[0], opens=["/dev/nvidia-uvm", "/dev/nvidia0"])
    found = document(collect("processes", tmp_path, "--interval", "0.1"))
    assert [d["pid"] for d in found["light"]] == list(range(5000, 5040))
    facts = told(read(FORMAT, json.dumps(found)))
    assert facts["process.in_job", process(5039)] == "job:127.0.0.1:29500"
    assert facts["process.blocked_for", process(5039)] == 0.0
    assert facts["job.ranks.here", Subject(Scope.JOB, "127.0.0.1:29500", HERE)] == 2


@pytest.mark.process
def test_what_a_rank_forks_and_what_it_executes() -> None:
    """Both inherit its devices; what was executed is another program, and looked into."""
    code = (
        "import os, subprocess, sys, time\nif os.fork() == 0: time.sleep(60)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], close_fds=False)\n"
        "os.set_inheritable(8, True); os.set_inheritable(9, True)\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(61)'], close_fds=False)\n"
        "time.sleep(0.5); print('ready', flush=True); time.sleep(60)"
    )
    with on_gpu([sys.executable, "-c", code]) as pid:
        found = document(collect("processes", None))
    names = {row[0]: row[1] for row in found["processes"]}
    light = [d["pid"] for d in found["light"] if names[d["pid"]] == pid and "gpu" in d["why"]]
    full = [d for d in found["details"] if names[d["pid"]] == pid and "gpu" in d["why"]]
    assert len(light) == 1
    assert any("time.sleep(61)" in " ".join(d["cmdline"]) for d in full)


@pytest.mark.process
def test_other_programs_keep_their_arguments(tmp_path: Path) -> None:
    """Of what is only busy or idle no argument beyond the third is taken."""
    tree = Tree(tmp_path)
    tree.process(700, "worker", state="R", argv=["a", "b", "c", "private"], cpu=500)
    text = collect("processes", tmp_path, "--interval", "0.1")
    assert "private" not in text


# --- the probe ----------------------------------------------------------------------------


@pytest.mark.process
def test_a_recording_replays_byte_for_byte(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    ranks(tree, 4)
    text = collect("processes", tmp_path, "--interval", "0.1")
    call = ("processes", *ALWAYS)
    host = ReplayHost("gpu-1", [Reply(CallKind.SNAPSHOT, call, data=text.encode(), exit_code=0)])
    once, again = (PROBE.collect(ProbeRequest(10), host) for _ in range(2))
    assert once == again == read(FORMAT, text)
    assert {o.fact for o in once} <= set(PROBE.provides)


def test_processes_by_option() -> None:
    host = ReplayHost("gpu-1")
    found = PROBE.collect(ProbeRequest(10, {"pids": "42, 43"}), host)
    assert [o.fact for o in found] == list(PROBE.main)
    assert all("--pid 42 --pid 43" in o.detail for o in found)


# --- secrets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "x.py", "--token", "S3CRET"], ["x", "--hf-token=S3CRET"], ["x", "--api-key", "S3CRET"], ["x", "--dbPassword=S3CRET"],
        ["docker", "run", "-e", "AWS_SECRET_ACCESS_KEY=S3CRET", "img"], ["docker", "run", "--env=HF_TOKEN=S3CRET,S3CRET"],
        ["curl", "https://me:S3CRET@host/x"], ["curl", "-u", "me:S3CRET", "h"], ["curl", "-H", "Authorization: Bearer S3CRETS3CRET"],
        ["curl", "-H", "X-Api-Key: S3CRET"], ["curl", "https://h/?token=S3CRET&x=1"], ["sh", "-c", "export WANDB_API_KEY=S3CRET; run"],
        ["sh", "-c", "login --password 'a S3CRET b'"], ["sh", "-c", 'x --cfg {"password": "S3CRET", "n": 1}'],
        ["sshpass", "-p", "S3CRET", "ssh", "h"], ["sshpass", "-pS3CRET", "ssh"], ["mysql", "-pS3CRET"], ["x", "MY_DB_PASSWORD_PROD=S3CRET"],
        ["prog --token S3CRET (set by the program itself)"], ["x", "-----BEGIN RSA PRIVATE KEY-----\nS3CRET"], ["x", "--auth", "S3CRET"],
        ["x", "https://u:p@h/?token=S3CRET"], ["x", "postgresql://u:S3CRET@h/db"],
        ["mysql", "-p", "S3CRET"], ["env", "A=1", "mysqldump", "-uroot", "-pS3CRET", "db"], ["redis-cli", "-h", "x", "-a", "S3CRET"],
        ["docker", "exec", "c", "/usr/bin/mysql", "-h", "x", "-pS3CRET"], ["sh", "-c", "mysql -uroot -pS3CRET db; ls -p x"],
        ["sh", "-c", "redis-cli -a 'x S3CRET' ping && mysql --x -pS3CRET"], ["curl", "-ume:S3CRET", "h"],
        ["ldapsearch", "-wS3CRET"], ["sqlcmd", "-P", "S3CRET"], ["timeout", "9", "mariadb-dump", "-pS3CRET"],
    ],
)  # fmt: skip
def test_secrets_do_not_leave_the_process(argv: list[str]) -> None:
    assert "S3CRET" not in " ".join(collector.masked_arguments(argv))


@pytest.mark.parametrize(
    "argv", [["python", "mysql_loader.py", "-prefix"], ["ls", "-p", "x"], ["x", "-u", "me"], ["mongo-express"]]
)
def test_what_is_no_secret_stays(argv: list[str]) -> None:
    assert collector.masked_arguments(argv) == argv


@given(
    st.lists(st.text(max_size=12), max_size=3), st.sampled_from(["--token", "--db-password", "-api-key", "--hfToken", "--client.secret"]),
    st.booleans(), st.lists(st.text(max_size=12), max_size=3),
)  # fmt: skip
def test_the_value_of_a_secret_option_is_hidden_among_anything(
    before: list[str], name: str, joined: bool, after: list[str]
) -> None:
    value = ["=".join((name, "S3CRETVALUE"))] if joined else [name, "S3CRETVALUE"]
    out = collector.masked_arguments(["prog", *before, *value, *after])
    assert len(out) == 1 + len(before) + len(value) + len(after)
    if not any("-" in b or "=" in b for b in before):
        assert not any("S3CRETVALUE" in word for word in out)


def test_known_shapes_of_secrets() -> None:
    for secret in (
        "hf_abcdefghijklmnopqrst",
        "ghp_abcdefghijklmnopqrst",
        "sk-abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP",
    ):
        assert secret not in " ".join(collector.masked_arguments(["run", secret, f"x={secret}"]))


def test_ordinary_arguments_stay() -> None:
    argv = ["/usr/bin/python3", "-m", "torch.distributed.run", "--nproc-per-node=8", "train.py", "--max-tokens", "4096", "--tokenizer",
            "meta/llama", "--num-key-value-heads", "8", "--token-file", "/etc/t", "--lr=1e-4"]  # fmt: skip
    assert collector.masked_arguments(argv) == argv


def test_the_allow_list_of_variables() -> None:
    raw = b"RANK=1\0NCCL_IB_PKEY=2\0AWS_SECRET=x\0CUDA_X=https://u:pw@h\0KUBERNETES_SERVICE_HOST=1.2.3.4\0RANKX=1\0=\0x"
    kept = {"RANK": "1", "NCCL_IB_PKEY": "2", "CUDA_X": "https://***@h", "KUBERNETES_SERVICE_HOST": True}
    assert collector.environment_of(raw) == kept
