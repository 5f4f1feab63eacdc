"""Over a real ssh server on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from knowledge.observation import Status
from probes.host import Reply
from probes.live_host import LiveHost
from probes.remote import ConnectError
from probes.remote.reach import Reach
from probes.remote.remote_host import RemoteHost
from tests.probes.remote.processes import gone, marked
from tests.probes.remote.sshd_lab import Sshd, free_port

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    sshd = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield sshd
    sshd.stop()


def refused(reach: Reach) -> str:
    with pytest.raises(ConnectError) as caught:
        RemoteHost(reach, budget=10).connect()
    assert caught.value.hint
    return str(caught.value)


def test_a_machine_is_looked_at(server: Sshd) -> None:
    with RemoteHost(server.reach(), budget=20) as host, LiveHost() as here:
        assert host.name == "gpu-01"
        assert host.hostname == here.name
        assert host.whoami.uid == os.geteuid()
        assert host.whoami.root == (os.geteuid() == 0)
        assert abs(host.clock_offset.ns) <= host.clock_offset.error + 5_000_000  # one clock: loopback
        assert host.read("/proc/version").data == here.read("/proc/version").data
        assert host.files("/etc/host*") == here.files("/etc/host*")
        assert host.run(["uname", "-r"], deadline=5).data == here.run(["uname", "-r"], deadline=5).data
        assert b'"gpudiag/system/' in host.snapshot("system", deadline=10).data
        assert host.which(["sh", "no-such-tool"]).keys() == {"sh"}
        assert not host.broken


def test_arguments_reach_no_shell(server: Sshd, tmp_path: Path) -> None:
    words = ["$(touch owned)", "; touch owned", "`touch owned`", "a b", "'", '"', "\\", "é", "-n", ""]
    with RemoteHost(server.reach(), budget=20) as host:
        done = host.run(["printf", "%s\n", *words], deadline=5)
        assert done.text.splitlines() == words
        assert host.read("/tmp/$(touch owned)").status is Status.UNSUPPORTED
    assert not (tmp_path / "owned").exists()


def test_nothing_of_the_far_side_stays(server: Sshd) -> None:
    mark = marked()
    host = RemoteHost(server.reach(), budget=20).connect()
    waiting = Thread(target=host.run, args=(["sleep", mark],), kwargs={"deadline": 15.0})
    waiting.start()
    while gone(mark):
        time.sleep(0.02)
    host.close()
    waiting.join()
    assert gone(mark, 10)


def test_the_line_is_cut_in_the_middle(server: Sshd) -> None:
    mark = marked()
    told: list[Reply] = []
    with RemoteHost(server.reach(), budget=20) as host:
        before = host.read("/proc/version")
        parent = host.run(["sh", "-c", "echo $PPID"], deadline=5).text.strip()
        waiting = Thread(target=lambda: told.append(host.run(["sleep", mark], deadline=15)))
        waiting.start()
        while gone(mark):
            time.sleep(0.02)
        os.kill(int(parent), signal.SIGKILL)
        waiting.join(10)
        after = host.read("/proc/version")
        assert before.status is Status.OK
        assert told[0].status is after.status is Status.FAILED
        assert "the connection to gpu-01 broke" in told[0].detail
        assert "the connection to gpu-01 broke" in after.detail
        assert host.broken
        with pytest.raises(ConnectError, match="broke"):
            host.files("/etc/*")


def test_an_unknown_host_key(server: Sshd) -> None:
    known = server.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    try:
        said = refused(server.reach())  # though the settings of the client say "StrictHostKeyChecking no"
        assert "host key of gpu-01 is not known" in said
        assert known.read_text() == ""
    finally:
        known.write_text(text)


def test_a_changed_host_key(tmp_path: Path) -> None:
    server = Sshd(tmp_path).start()
    server.stop()
    known = (tmp_path / "known_hosts").read_text()
    server.new_key("host_key")
    server.start()
    (tmp_path / "known_hosts").write_text(known)
    try:
        said = refused(server.reach(address="127.0.0.1", port=server.port))
        assert "is not the one that is known" in said
        assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in said
    finally:
        server.stop()


def test_through_another_machine(server: Sshd, tmp_path: Path) -> None:
    there = Sshd(tmp_path).start()
    try:
        both = (server.folder / "known_hosts").read_text() + (tmp_path / "known_hosts").read_text()
        (tmp_path / "known_hosts").write_text(both)
        (server.folder / "authorized_keys").write_text((tmp_path / "user_key.pub").read_text())
        jump = f"127.0.0.1:{server.port}"
        with RemoteHost(there.reach("gpu-02", jump=jump), budget=20) as host:
            assert host.run(["sh", "-c", "echo ${SSH_CONNECTION:-unset}"], deadline=5).whole
            ends = host.read(f"/proc/{host.run(['sh', '-c', 'echo $PPID'], deadline=5).text.strip()}/environ").text
            assert f"127.0.0.1 {there.port}" in ends
    finally:
        (server.folder / "authorized_keys").write_text((server.folder / "user_key.pub").read_text())
        there.stop()


def test_a_key_that_is_not_wanted(server: Sshd, tmp_path: Path) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    said = refused(Reach("gpu-01", address="127.0.0.1", port=server.port, user="nobody-here", identity=str(tmp_path / "other"),
                         ssh_config=str(server.folder / "ssh_config")))  # fmt: skip
    assert "does not let this user in" in said


def test_nobody_listens(server: Sshd) -> None:
    said = refused(server.reach(address="127.0.0.1", port=free_port()))
    assert "refuses connections" in said


def test_it_accepts_and_never_speaks(server: Sshd) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        said = refused(server.reach(address="127.0.0.1", port=s.getsockname()[1], connect_timeout=1))
    assert "did not answer in 1 s" in said


def test_no_such_name(server: Sshd) -> None:
    assert "has no address" in refused(server.reach("no-such-host.invalid"))


def test_no_python_there(server: Sshd) -> None:
    said = refused(server.reach(python="/opt/no/python3.9"))
    assert "there is no /opt/no/python3.9 on gpu-01" in said


def test_an_old_python_there(server: Sshd, tmp_path: Path) -> None:
    old = tmp_path / "python2"
    old.write_text("#!/bin/sh\necho 'Unknown option: -I' >&2\nexit 2\n")
    old.chmod(0o755)
    assert "is too old" in refused(server.reach(python=str(old)))


@pytest.mark.parametrize(
    "command", ["echo welcome to this machine", "printf 'a%0.s' $(seq 3000)", "echo gpudiag; echo >&2 no"]
)
def test_what_a_login_prints_before(tmp_path: Path, command: str) -> None:
    server = Sshd(tmp_path, f'ForceCommand {command}; eval "$SSH_ORIGINAL_COMMAND"').start()
    try:
        with RemoteHost(server.reach(), budget=20) as host:
            assert host.read("/proc/version").whole
    finally:
        server.stop()


def test_an_account_that_may_run_nothing(tmp_path: Path) -> None:
    server = Sshd(tmp_path, "ForceCommand echo 'This account is currently not available.'; exit 1").start()
    try:
        assert "may not run commands" in refused(server.reach())
    finally:
        server.stop()


@pytest.mark.parametrize("allowed", [True, False])
def test_through_sudo(tmp_path: Path, allowed: bool) -> None:
    """A stand-in of ours that plays sudo(8) with -n: it runs what it is told, or says that it wants a password."""
    play = 'shift; GPUDIAG_TEST=sudo exec "$@"' if allowed else "echo 'sudo: a password is required' >&2; exit 1"
    server = Sshd(tmp_path, f"SetEnv PATH={tmp_path}:{os.environ['PATH']}").start()
    (tmp_path / "sudo").write_text(f'#!/bin/sh\n[ "$1" = -n ] || exit 9\n{play}\n')
    (tmp_path / "sudo").chmod(0o755)
    try:
        if not allowed:
            assert "sudo on gpu-01 wants a password" in refused(server.reach(sudo=True))
            return
        with RemoteHost(server.reach(sudo=True), budget=20) as host:
            own = host.run(["sh", "-c", "echo $PPID"], deadline=5).text.strip()
            assert "GPUDIAG_TEST=sudo" in host.read(f"/proc/{own}/environ").text
    finally:
        server.stop()
