"""A host over a pipe answers as the machine itself does; and what it says when the line is gone."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.observation import Status
from probes._children import start_time
from probes.hang_memory import HangMemory
from probes.host import Host, RecordingHost, Reply
from probes.live_host import COLLECTORS, LiveHost
from probes.remote import ConnectError
from probes.remote.reach import BOOTSTRAP, FLAGS, Reach
from probes.remote.remote_host import RemoteHost, Waits
from probes.runner import run, select
from tests.at_once import at_once
from tests.probes.remote.interpreters import far
from tests.probes.remote.processes import gone, marked

pytestmark = pytest.mark.process

CAP = 1 << 16


def over_pipe(name: str = "gpu-12", **more: object) -> RemoteHost:
    return RemoteHost(Reach(name), **{"budget": 60, "command": far(), **more})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Host, Host]]:
    with over_pipe(cap=CAP) as remote, LiveHost("gpu-12", cap=CAP) as live:
        yield remote, live


def same(one: Reply, other: Reply) -> None:
    assert replace(one, started=None) == replace(other, started=None)
    assert one.started is not None
    assert other.started is not None
    assert abs(one.started - other.started) < 60 * 10**9


# --- laws -------------------------------------------------------------------------------------

SIZES = st.sampled_from([0, 1, CAP // 2 - 1, CAP // 2, CAP // 2 + 1, CAP - 1, CAP, CAP + 1, 3 * CAP, (1 << 20) + CAP])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(size=SIZES, line=st.integers(1, 5000), fill=st.binary(min_size=1, max_size=40))
def test_every_file(both: tuple[Host, Host], tmp_path: Path, size: int, line: int, fill: bytes) -> None:
    path = tmp_path / "file"
    text = (fill * (line // len(fill) + 1))[:line] + b"\n"
    path.write_bytes((text * (size // len(text) + 1))[:size])
    same(*(h.read(str(path)) for h in both))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(out=SIZES, errors=st.sampled_from([0, 10, 40_000, 100_000]), code=st.integers(0, 255), seed=st.integers(1, 1000))
def test_every_command(both: tuple[Host, Host], out: int, errors: int, code: int, seed: int) -> None:
    program = (
        f"import sys,random; r=random.Random({seed}); sys.stderr.write('e%d\\n' % r.random() * {errors // 3}); sys.stderr.flush(); "
        f"d=(b'%d ' % r.randrange(10**9) * 90 + b'\\n') * ({out} // 90 + 1); sys.stdout.buffer.write(d[:{out}]); sys.stdout.flush(); sys.exit({code})"
    )
    same(*(h.run([sys.executable, "-I", "-S", "-c", program], deadline=20) for h in both))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1, max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(NAMES.filter(lambda n: n not in (".", "..") and len(n.encode()) < 200), max_size=5), data=st.data()
)
def test_every_path(both: tuple[Host, Host], tmp_path: Path, names: list[str], data: st.DataObject) -> None:
    folder = tmp_path / "names"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
    asked = data.draw(st.sampled_from([*names, "none", "*", "?*", "a*", "[a-z]*", ""]))
    assert both[0].files(f"{folder}/{asked}") == both[1].files(f"{folder}/{asked}")
    same(*(h.read(f"{folder}/{asked}") for h in both))


CALLS: list[Callable[[Host], Reply]] = [
    lambda h: h.read("/proc/self/no-such-file"),
    lambda h: h.read("/etc"),
    lambda h: h.read("/etc/pass\x00wd"),
    lambda h: h.read("/dev/null"),
    lambda h: h.read("/proc/version"),
    lambda h: h.read("/etc/hostname/below"),
    lambda h: h.read("/proc/kmsg-no"),
    lambda h: h.run(["no-such-tool"], deadline=1),
    lambda h: h.run(["/no/such/tool"], deadline=1),
    lambda h: h.run(["/etc/hostname"], deadline=1),
    lambda h: h.run([""], deadline=1),
    lambda h: h.run(["echo", "a\x00b"], deadline=1),
    lambda h: h.run(["sh", "-c", "kill -9 $$"], deadline=5),
    lambda h: h.run(["sh", "-c", "echo some; sleep 60"], deadline=0.4),
    lambda h: h.run(["sh", "-c", "trap '' TERM; echo some; while :; do sleep 60; done"], deadline=0.4),
    lambda h: h.run(["sh", "-c", "exec >&- 2>&-; exec sleep 60"], deadline=20),
    lambda h: h.run(["sh", "-c", "sleep 60 & echo left"], deadline=20),
    lambda h: h.run(
        ["sh", "-c", "pwd >/dev/null; ulimit -c; umask; echo ${HOME-none} $TERM $LC_ALL; cat"], deadline=20
    ),
    lambda h: h.run(["sh", "-c", "kill -PIPE $$; echo lives"], deadline=5),
    lambda h: h.snapshot("system", "--no-such-option", deadline=5),
]


def test_every_end(both: tuple[Host, Host]) -> None:
    def law(number: int) -> None:
        same(*(CALLS[number](h) for h in both))

    at_once(law, range(len(CALLS)))


def test_what_may_not_be_read(tmp_path: Path) -> None:
    """As somebody who is not root: nobody, when root runs the tests."""
    start, path = far(), tmp_path / "secret"
    path.touch(0)
    if os.geteuid() == 0:
        if not shutil.which("setpriv") or not Path("/usr/bin/python3").exists():
            pytest.skip("no setpriv, or no interpreter that everybody may run")
        start = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", *FLAGS, BOOTSTRAP]
        path = Path("/proc/1/mem")
    with over_pipe(command=start) as host:
        assert not host.whoami.root
        reply = host.read(str(path))
        assert reply.status is Status.DENIED
        assert reply.detail.endswith("run as root to see it")


def test_a_machine_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hostname").write_text("inside\n")
    reach = Reach("gpu-12", root=str(tmp_path))
    with RemoteHost(reach, budget=30, command=far()) as remote, LiveHost("gpu-12", root=str(tmp_path)) as live:
        same(remote.read("/etc/hostname"), live.read("/etc/hostname"))
        assert remote.files("/etc/*") == live.files("/etc/*") == ["/etc/hostname"]
        same(remote.run(["echo", "x"], deadline=5), live.run(["echo", "x"], deadline=5))
        assert remote.snapshot("system", deadline=5).data[:30] == live.snapshot("system", deadline=5).data[:30]


def test_probes_see_the_same(both: tuple[Host, Host]) -> None:
    """What does not change from one moment to the next is the same, fact by fact."""
    specs = [
        s
        for s in select()
        if s.name in ("pci", "rdma", "services", "nvidia-smi", "nvlink", "fabric-manager-log", "dcgm-health")
    ]
    seen = [run(h, specs, budget=60, jobs=8) for h in both]
    one, other = (
        {(r.probe, r.status, r.detail, o.fact, o.subject, o.status) for r in found for o in r.observations}
        for found in seen
    )
    assert one == other
    assert len(one) > len(specs)


# --- every interpreter --------------------------------------------------------------------------


@pytest.mark.parametrize("minor", range(6, 15))
def test_every_python(minor: int) -> None:
    with over_pipe(command=far(minor)) as host:
        assert host.python.startswith(f"3.{minor}.")
        assert host.read("/etc/passwd").whole
        assert host.files("/etc/passw?") == ["/etc/passwd"]
        assert host.run(["echo", "é"], deadline=5).text == "é\n"
        assert host.read("/etc/é").status is Status.UNSUPPORTED
        reply = host.snapshot("system", deadline=5)
        if minor < 8:
            assert reply.status is Status.UNSUPPORTED
            assert "needs 3.8" in reply.detail
        else:
            assert reply.whole, reply.errors


@pytest.mark.parametrize("name", sorted(p.stem for p in COLLECTORS.glob("[a-z]*.py")))
def test_every_collector_under_the_oldest(name: str) -> None:
    with over_pipe(command=far(8)) as host:
        reply = host.snapshot(name, "--help", deadline=10)
        if name == "capture":
            assert reply.status is Status.UNSUPPORTED
            assert "run gpudiag profile on that machine" in reply.detail
            return
        assert "Traceback" not in reply.errors
        assert reply.status is Status.OK


# --- the line breaks ----------------------------------------------------------------------------


def test_a_check_whose_line_breaks_says_so(tmp_path: Path) -> None:
    """After some answers the far side is killed: what is asked later is FAILED, nothing is said to be fine or absent."""
    specs = [
        s
        for s in select()
        if s.name in ("kernel-log", "system", "services", "nvidia-smi", "processes", "fabric-manager-log")
    ]
    with over_pipe() as host:
        recording = RecordingHost(host)
        first = run(recording, [s for s in specs if s.name == "system"], budget=20)
        assert first[0].status is Status.OK
        host.run(["sh", "-c", "kill -9 $PPID"], deadline=5)
        rest = run(recording, [s for s in specs if s.name != "system"], budget=20, jobs=4)
        assert {r.status for r in rest} == {Status.FAILED}, [(r.probe, r.status, r.detail) for r in rest]
        assert all("the connection to gpu-12 broke" in r.detail for r in rest)
        assert all(o.status is Status.FAILED for r in rest for o in r.observations)
        assert "the connection to gpu-12 broke" in host.broken
    kept = {r.title: r.status for r in recording.replies}
    assert Status.OK in kept.values()


def test_closing_ends_what_runs() -> None:
    mark = marked()
    host = over_pipe().connect()
    told: list[Reply] = []
    threads = [
        threading.Thread(
            target=lambda: told.append(host.run(["sh", "-c", f"trap '' TERM; sleep {mark} & wait"], deadline=30))
        )
        for _ in range(3)
    ]
    for t in threads:
        t.start()
    while gone(mark):
        time.sleep(0.01)
    host.close()
    for t in threads:
        t.join()
    assert gone(mark, 10)
    assert {r.detail for r in told} == {"the check was broken off"}
    assert host.broken == ""
    assert host.read("/proc/version").detail.endswith("the check was broken off")


def test_the_time_limit_holds_on_both_sides() -> None:
    mark = marked()
    with over_pipe(budget=0.5, waits=Waits(margin=0.3)) as host:
        reply = host.run(["sleep", mark], deadline=30)
        assert reply.status is Status.FAILED
        assert "broke" in reply.detail
    assert gone(mark, 10)


def test_threads_share_it() -> None:
    with over_pipe() as host:
        told: dict[int, Reply] = {}

        def ask(n: int) -> None:
            told[n] = host.run(["sh", "-c", f"sleep 0.{n % 4}; echo {n}"], deadline=20)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(80)]  # more than run side by side there
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert {n: r.text for n, r in told.items()} == {n: f"{n}\n" for n in range(80)}


def test_a_flood_stays_small() -> None:
    with over_pipe(cap=1 << 22) as host:
        floods = [
            threading.Thread(target=host.run, args=(["yes", "x" * 100],), kwargs={"deadline": 0.5}) for _ in range(8)
        ]
        for t in floods:
            t.start()
        pid = host.run(["sh", "-c", "echo $PPID"], deadline=5).text.strip()
        for t in floods:
            t.join()
        peak = next(line for line in host.read(f"/proc/{pid}/status").text.splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 60_000, peak  # KiB


def test_many_long_outputs_share_what_may_be_kept_there() -> None:
    """Ends of outputs beyond what the far side holds of all of them are left out, and that is said, byte for byte."""
    count = r"import sys; sys.stdout.write(''.join('%%063d\n' %% n for n in range(%d)))"
    with over_pipe(cap=20 << 20) as host:
        told: list[Reply] = []
        argv = [sys.executable, "-I", "-S", "-c", count % 330_000]
        threads = [threading.Thread(target=lambda: told.append(host.run(argv, deadline=30))) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len(told) == 2
    for reply in told:
        assert reply.status is Status.OK
        lines = reply.text.splitlines()
        mark = next(n for n, line in enumerate(lines) if line.startswith("[gpudiag: "))
        assert lines[:mark] == [f"{n:063d}" for n in range(mark)]
        after = len(lines) - mark - 1
        assert lines[mark + 1 :] == [f"{n:063d}" for n in range(330_000 - after, 330_000)]
        assert lines[mark].split()[1] == str(64 * 330_000 - 64 * (mark + after))


def test_before_it_is_connected() -> None:
    host = over_pipe()
    assert host.as_of is None
    assert host.python == ""
    assert host.read("/proc/version").status is Status.FAILED
    host.close()


def test_what_hung_there_is_remembered(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    memory = HangMemory(tmp_path / "hangs.json", "")
    with over_pipe(memory=memory) as host:
        killer = threading.Timer(0.5, lambda: host.run(["sh", "-c", "kill -9 $PPID"], deadline=5))
        killer.start()
        assert host.run([str(tool)], deadline=20).status is Status.FAILED  # the line broke while it ran
        killer.join()
    with over_pipe(memory=memory) as host:  # the same boot: it did not go down
        assert host.run([str(tool)], deadline=0.2).status is Status.TIMEOUT
    assert "begun" not in (tmp_path / "hangs.json").read_text()


@pytest.mark.parametrize("state", ["begun", "stuck"])
def test_what_took_it_down_or_hangs_there_is_not_tried_again(tmp_path: Path, state: str) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho asked\n")
    tool.chmod(0o755)
    file = tmp_path / "hangs.json"
    with over_pipe(memory=HangMemory(file, "")) as host:
        mine = {"pid": os.getpid(), "started": start_time(os.getpid()), "where": "state D in nvidia_ioctl"}
        entry = {
            "state": state,
            "at": "2026-01-01T00:00:00Z",
            "boot": "another" if state == "begun" else host.boot_id,
            **mine,
        }
        file.write_text(json.dumps({str(tool): entry}))
        reply = host.run([str(tool)], deadline=5)
        assert reply.status is (Status.FAILED if state == "begun" else Status.TIMEOUT)
        assert ("went down" if state == "begun" else "still hangs") in reply.detail
        file.write_text(json.dumps({str(tool): {**entry, "boot": "another", "state": "stuck"}}))
        assert host.run([str(tool)], deadline=5).text == "asked\n"  # it has been started anew since


def test_a_clock_of_its_own() -> None:
    with over_pipe() as host:
        assert host.as_of is not None
        assert abs(host.as_of - time.time_ns()) < 60 * 10**9
        assert abs(host.clock_offset.ns) <= host.clock_offset.error + 5_000_000


def test_no_such_collector_and_no_such_program() -> None:
    with over_pipe() as host, pytest.raises(ValueError, match="no collector"):
        host.snapshot("../../etc/passwd", deadline=1)
    with pytest.raises(ConnectError, match="not installed here"):
        over_pipe(command=["/no/such/ssh"]).connect()
