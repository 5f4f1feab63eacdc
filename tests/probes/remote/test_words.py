"""What ssh, srun and kubectl say, and what it means: lines as they are printed, and lines that mean something else."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from knowledge.language import Text
from probes.remote.reach import Reach, Via
from probes.remote.words import broke, explained
from tests.cases import each

SAID = [
    (Via.SSH, "ssh: Could not resolve hostname gpu-99: Name or service not known", "has no address"),
    (Via.SSH, "ssh: connect to host 10.0.0.1 port 22: Connection refused", "refuses connections"),
    (Via.SSH, "ssh: connect to host 10.0.0.1 port 22: Connection timed out", "did not answer in 10 s"),
    (Via.SSH, "Connection timed out during banner exchange\nConnection to 10.0.0.1 port 22 timed out", "did not answer"),
    (Via.SSH, "ssh: connect to host 10.0.0.1 port 22: No route to host", "there is no way to"),
    (Via.SSH, "me@10.0.0.1: Permission denied (publickey,password).", "does not let this user in"),
    (Via.SSH, "Warning: Identity file /k not accessible: No such file or directory.\nme@h: Permission denied (publickey).", "does not let this user in"),
    (Via.SSH, "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", "does not let this user in"),
    (Via.SSH, "No ED25519 host key is known for gpu-12 and you have requested strict checking.\nHost key verification failed.", "is not known here"),
    (Via.SSH, "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "is not the one that is known"),
    (Via.SSH, "Host key for gpu-12 has changed and you have requested strict checking.\nHost key verification failed.", "is not the one that is known"),
    (Via.SSH, "kex_exchange_identification: read: Connection reset by peer", "closed the connection"),
    (Via.SSH, "Connection closed by 10.0.0.1 port 22", "closed the connection"),
    (Via.SSH, "Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa", "no method in common"),
    (Via.SSH, "Bad owner or permissions on /home/me/.ssh/config", "cannot use its settings"),
    (Via.SSH, "This account is currently not available.", "may not run commands"),
    (Via.SSH, "bash: line 1: python3: command not found", "there is no python3 on gpu-12"),
    (Via.SSH, "sh: 1: python3: not found", "there is no python3 on gpu-12"),
    (Via.SSH, "python3: Command not found.", "there is no python3 on gpu-12"),
    (Via.SSH, "zsh:1: command not found: python3", "there is no python3 on gpu-12"),
    (Via.SSH, "fish: Unknown command: python3", "there is no python3 on gpu-12"),
    (Via.SSH, "bash: line 1: /opt/python3: No such file or directory", "there is no python3 on gpu-12"),
    (Via.SSH, "-rbash: line 1: /usr/bin/python3: restricted: cannot specify `/' in command names", "may not run commands"),
    (Via.SSH, "Unknown option: -I\nusage: /usr/bin/python3 [option] ... [-c cmd | -m mod | file | -] [arg] ...", "is too old"),
    (Via.SSH, "-I -S -B -X utf8 -c import sys,zlib;b=sys.stdin.buffer", "python3 on gpu-12 is no Python"),
    (Via.SSH, "ModuleNotFoundError: No module named 'zlib'", "lacks a part of its standard library"),
    (Via.SSH, "sudo: a password is required", "wants a password"),
    (Via.SLURM, "srun: error: Unable to allocate resources: Invalid node name specified", "knows no node gpu-12"),
    (Via.SLURM, "srun: Required node not available (down, drained or reserved)", "does not give gpu-12 out"),
    (Via.SLURM, "srun: error: Unable to allocate resources: Requested nodes are busy", "is busy"),
    (Via.SLURM, "srun: error: invalid partition specified: none", "does not accept the partition"),
    (Via.SLURM, "srun: error: Unable to allocate resources: Invalid account or account/partition combination specified", "does not accept the partition"),
    (Via.SLURM, "srun: error: Unable to confirm allocation for job 77: Invalid job id specified", "does not take the job"),
    (Via.SLURM, "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)", "cannot be asked from here"),
    (Via.SLURM, "srun: fatal: Could not establish a configuration source", "cannot be asked from here"),
    (Via.SLURM, "srun: error: Task launch for StepId=9.0 failed on node gpu-12: Communication connection failure", "could start nothing"),
    (Via.SLURM, "slurmstepd: error: execve(): python3: No such file or directory", "there is no python3 on gpu-12"),
    (Via.SLURM, "srun: error: gpu-12: task 0: Exited with exit code 2", "probably there is no python3 on gpu-12"),
    (Via.KUBERNETES, 'Error from server (NotFound): pods "x" not found', "knows no such thing"),
    (Via.KUBERNETES, 'Error from server (Forbidden): pods "x" is forbidden: User "me" cannot create resource "pods/exec"', "does not allow it"),
    (Via.KUBERNETES, "error: You must be logged in to the server (Unauthorized)", "does not know who asks"),
    (Via.KUBERNETES, 'error: unable to upgrade connection: container not found ("main")', "no such running container"),
    (Via.KUBERNETES, "error: cannot exec into a container in a completed pod; current phase is Failed", "the pod does not run"),
    (Via.KUBERNETES, 'error: context "x" does not exist', "no such context"),
    (Via.KUBERNETES, "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?", "cannot be reached"),
    (Via.KUBERNETES, 'OCI runtime exec failed: exec: "python3": executable file not found in $PATH: unknown\ncommand terminated with exit code 126', "there is no python3 in the pod"),
]  # fmt: skip


@each(("via", "said", "means"), SAID)
def test_what_it_means(via: Via, said: str, means: str) -> None:
    error = explained(Reach("gpu-12", via), said, "it ended with exit code 255")
    assert means in error.message
    assert error.message.startswith("gpu-12: ")
    assert error.hint


@each(("via", "said"), [(via, said) for via, said, _ in SAID])
def test_it_means_the_same_in_chinese(via: Via, said: str) -> None:
    """The reason and what to do are Chinese; names, and lines that are quoted, are as they were in English."""
    error = explained(Reach("gpu-12", via, address="10.9.8.7"), said, "it ended with exit code 255")
    assert error.why.zh.startswith("gpu-12：")
    assert re.search("[一-鿿]{2}", error.why.zh.partition("：")[2])
    assert re.search("[一-鿿]{2}", error.advice.zh)
    assert ("10.9.8.7" in error.why.zh) == ("10.9.8.7" in error.why.en)
    for quoted in said.splitlines():
        assert (quoted in error.why.zh) == (quoted in error.why.en)
    assert error.in_("en") == str(error)
    assert error.in_("zh") == error.text.zh == f"{error.why.zh}\n  {error.advice.zh}"


@each(
    ("why", "chinese"),
    [
        ("the time for looking at it, 3.5 s, was spent", "查看时限 3.5 秒已用完"),
        ("it was closed", "连接已关闭"),
        ("it was closed there: Killed by signal 1.", "对方关闭了连接：Killed by signal 1."),
        (
            "ssh ended with exit code 255: client_loop: send disconnect",
            "ssh 以退出码 255 结束：client_loop: send disconnect",
        ),
        ("what it says makes no sense (a header that is none)", "收到的内容无法理解 (a header that is none)"),
        ("no answer in 10 s", "10 秒内没有应答"),
        ("something new", "something new"),
    ],
)
def test_how_a_line_ended(why: str, chinese: str) -> None:
    said = broke("gpu-12", why)
    assert (said.en, said.zh) == (f"the connection to gpu-12 broke: {why}", f"与 gpu-12 的连接中断：{chinese}")
    late = explained(Reach("gpu-12"), "", why)
    assert late.why == Text(f"gpu-12: no connection: {why}", f"gpu-12：无法连接：{chinese}")


@given(st.sampled_from(list(Via)), st.text(max_size=200), st.booleans())
def test_whatever_is_said(via: Via, said: str, late: bool) -> None:
    error = explained(Reach("gpu-12", via), said, "it was closed there", late=late)
    assert error.message.startswith("gpu-12: ")
    assert "\n" not in error.message
    assert "\x1b" not in error.message
    assert len(error.message) < 600


def test_what_is_not_known_is_quoted() -> None:
    error = explained(Reach("gpu-12"), "first\nsomething odd {0} happened\n", "it ended with exit code 7")
    assert error.message == "gpu-12: no connection: it ended with exit code 7 (something odd {0} happened)"
