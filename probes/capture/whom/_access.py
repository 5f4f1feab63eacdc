"""Whether the kernel lets us look into a process, and if not, which of its rules says no.

The rules are those of ptrace(2), "Ptrace access mode checking", in its order. Opening /proc/PID/mem asks exactly this of the
kernel (PTRACE_MODE_ATTACH) and touches nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from knowledge.language import Text
from probes.capture.model import Process, Refusal
from probes.capture.whom import identity

SYS_PTRACE = 19  # bit of CAP_SYS_PTRACE
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_WHOLE = re.compile(r"\s*0\s+0\s+4294967295\s*")  # /proc/self/uid_map of the first user namespace


def may_look(process: Process) -> Refusal | None:
    """None when the memory of the process may be read and ptrace may attach; else which permission is missing."""
    try:
        os.close(os.open(f"/proc/{process.pid}/mem", os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        return _why(process)
    except OSError:
        return None  # it has gone, or it has no memory: others say so
    return None


def yama() -> int:
    """Level of the Yama module: 0 off, 1 descendants only, 2 CAP_SYS_PTRACE only, 3 nobody; 0 where it is not there."""
    with suppress(OSError, ValueError):
        return int(YAMA.read_text().strip())
    return 0


def _why(process: Process) -> Refusal:
    try:
        ours, theirs = identity.status_of(os.getpid()), identity.status_of(process.pid)
    except OSError:
        return _refused("no-permission", Text("the process may not be looked into", "无权查看该进程"), _sudo(process))
    capable = bool(_mask(ours, "CapEff") >> SYS_PTRACE & 1)
    level = yama()
    if level == 3:
        return _YAMA_3
    if capable:
        return _outer_namespace(process) if not _first_namespace() else _policy(process)
    if not _same_user(ours, theirs):
        return _other_user(process)
    if _mask(theirs, "CapPrm") & ~_mask(ours, "CapPrm"):
        return _stronger(process)
    if _not_dumpable(process):
        return _undumpable(process)
    if level in (1, 2):
        return _yama(process, level)
    if identity.namespace(process.pid, "user") != identity.namespace("self", "user"):
        return _outer_namespace(process)
    return _policy(process)


def _mask(status: Mapping[str, str], name: str) -> int:
    try:
        return int(status.get(name, "0"), 16)
    except ValueError:
        return 0


def _same_user(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Whether the target's real, effective and saved ids are all our real one: users and groups."""
    for name in ("Uid", "Gid"):
        own, other = ours.get(name, "").split()[:1], theirs.get(name, "").split()[:3]
        if not own or any(value != own[0] for value in other):
            return False
    return True


def _first_namespace() -> bool:
    try:
        return bool(_WHOLE.fullmatch(Path("/proc/self/uid_map").read_text()))
    except OSError:
        return True


def _not_dumpable(process: Process) -> bool:
    """Whether the kernel gave the files of the process to root, as it does for one that may not be dumped."""
    with suppress(OSError):
        return Path(f"/proc/{process.pid}/environ").stat().st_uid != process.uid
    return False


# --- the sentences ----------------------------------------------------------------------------


def _refused(code: str, why: Text, remedy: Text) -> Refusal:
    return Refusal(code, why, remedy)


def _sudo(process: Process) -> Text:
    return Text(
        f"run it as root: sudo gpudiag profile --pid {process.pid}",
        f"以 root 运行：sudo gpudiag profile --pid {process.pid}",
    )


def _other_user(process: Process) -> Refusal:
    me = identity.user(os.getuid())
    group = process.uid == os.getuid()
    owner = "another group, or has changed its user" if group else f"user {process.user}"
    owner_zh = "另一用户组，或曾切换用户" if group else f"用户 {process.user}"
    return _refused(
        "no-permission-user",
        Text(f"process {process.pid} belongs to {owner}; gpudiag runs as {me} without CAP_SYS_PTRACE",
             f"进程 {process.pid} 属于{owner_zh}；gpudiag 以 {me} 运行且没有 CAP_SYS_PTRACE"),
        Text(f"run it as that user (sudo -u {process.user} gpudiag profile --pid {process.pid}) or as root (sudo gpudiag profile "
             f"--pid {process.pid}); in a container, start it with --cap-add SYS_PTRACE",
             f"以该用户运行（sudo -u {process.user} gpudiag profile --pid {process.pid}），或以 root 运行（sudo gpudiag profile "
             f"--pid {process.pid}）；在容器中请用 --cap-add SYS_PTRACE 启动"),
    )  # fmt: skip


def _stronger(process: Process) -> Refusal:
    return _refused(
        "no-permission-capabilities",
        Text(f"process {process.pid} holds capabilities that gpudiag has not, so only CAP_SYS_PTRACE may look into it",
             f"进程 {process.pid} 拥有 gpudiag 所没有的 capability，只有具备 CAP_SYS_PTRACE 才能查看"),
        _sudo(process),
    )  # fmt: skip


def _undumpable(process: Process) -> Refusal:
    return _refused(
        "no-permission-dumpable",
        Text(f"process {process.pid} has made itself not dumpable (prctl PR_SET_DUMPABLE, or a program with changed rights), so "
             "only CAP_SYS_PTRACE may look into it",
             f"进程 {process.pid} 被设为不可转储（prctl PR_SET_DUMPABLE，或以变更后的权限运行），只有具备 CAP_SYS_PTRACE 才能查看"),
        _sudo(process),
    )  # fmt: skip


def _yama(process: Process, level: int) -> Refusal:
    whom = "its ancestors" if level == 1 else "holders of CAP_SYS_PTRACE"
    whom_zh = "其祖先进程" if level == 1 else "具备 CAP_SYS_PTRACE 者"
    relax = "; or relax the rule until the next boot: sudo sysctl kernel.yama.ptrace_scope=0" if level == 1 else ""
    relax_zh = "；或在下次重启前放宽该规则：sudo sysctl kernel.yama.ptrace_scope=0" if level == 1 else ""
    sudo = _sudo(process)
    return _refused(
        "no-permission-yama",
        Text(f"the kernel's Yama module is at level {level}: a process may be looked into only by {whom}",
             f"内核 Yama 模块为 {level} 级：只有{whom_zh}可以查看该进程"),
        Text(sudo.en + relax, sudo.zh + relax_zh),
    )  # fmt: skip


_YAMA_3 = Refusal(
    "no-permission-yama",
    Text(
        "the kernel's Yama module is at level 3: nobody, not even root, may look into a process until the next boot",
        "内核 Yama 模块为 3 级：在下次重启前任何人（包括 root）都不能查看进程",
    ),
    Text(
        "boot with kernel.yama.ptrace_scope at 0, 1 or 2 (a file in /etc/sysctl.d sets it)",
        "请将 kernel.yama.ptrace_scope 设为 0、1 或 2（由 /etc/sysctl.d 中的文件设置）后重启",
    ),
)


def _outer_namespace(process: Process) -> Refusal:
    return _refused(
        "no-permission-namespace",
        Text(f"process {process.pid} belongs to another user namespace, in which gpudiag's rights do not count",
             f"进程 {process.pid} 属于另一个用户命名空间，gpudiag 的权限在其中无效"),
        Text("run gpudiag on the node itself as root, outside of the container", "请在容器之外，于节点上以 root 运行 gpudiag"),
    )  # fmt: skip


def _policy(process: Process) -> Refusal:
    return _refused(
        "no-permission-policy",
        Text(f"the kernel refuses to show process {process.pid} though user and capabilities would allow it: a security module "
             "(SELinux, AppArmor) or a seccomp filter says no",
             f"尽管用户与 capability 均允许，内核仍拒绝查看进程 {process.pid}：由安全模块（SELinux、AppArmor）或 seccomp 过滤器拒绝"),
        Text("look for the denial (sudo ausearch -m avc -ts recent, or sudo dmesg | grep -i denied) and allow ptrace; in a "
             "container, start it with --cap-add SYS_PTRACE --security-opt apparmor=unconfined",
             "查找拒绝记录（sudo ausearch -m avc -ts recent，或 sudo dmesg | grep -i denied）并允许 ptrace；在容器中请用 "
             "--cap-add SYS_PTRACE --security-opt apparmor=unconfined 启动"),
    )  # fmt: skip
