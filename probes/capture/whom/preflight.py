"""What will not be done to a target, and why, before anything is: it looks and touches nothing.

==================== ======================================================================================
code                 what it refuses
==================== ======================================================================================
gone, zombie         everything: the process has ended
kernel-thread        everything: nobody's program
no-permission-*      stacks and all that is injected: user, capabilities, dumpable, yama, namespace, policy
no-python            the same; free-threaded, pyspy-missing, unsupported-version: stacks alone
tracer               all that is injected: another process traces it
state-d, stopped     all that is injected: its main thread waits in the kernel, or was stopped
no-torch             what torch does: torch, kernels, memory, shapes, flops, gradnorm
no-cuda              kernels and memory: it uses no GPU; not applicable rather than missing, see `NOT_APPLICABLE`
near-memory-limit    all that is injected, unless forced
no-space             what leaves a trace in the target's file system
cupti-taken          kernels, unless forced: another profiler has CUPTI
==================== ======================================================================================

and what `inject.able` says of the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from knowledge.language import Text
from probes.capture.model import INJECTED, Item, Process, Refusal, Target
from probes.capture.stacks import pyspy
from probes.capture.whom import _access, _room, _tools, identity
from probes.collectors import processes as collector
from probes.host import Host

# What does not apply to the target at all: to leave it out needs no excuse, and is told only to who named the item.
NOT_APPLICABLE = frozenset({"no-cuda"})
TORCH = INJECTED - {Item.LOSS}  # a named local is read without torch
CUDA = frozenset({Item.KERNELS, Item.MEMORY})
TRACES = frozenset({Item.TORCH, Item.KERNELS, Item.SHAPES, Item.FLOPS})  # what writes a file
_LOOKS, _PAUSE = 10, 0.02  # a job that reads files is in state D now and then: only one that stays there is refused


def check(
    target: Target, items: Iterable[Item], *, force: bool = False, host: Host | None = None
) -> dict[Item, Refusal]:
    """Of the `items`, those that are refused. Never raises: a target that has ended is a reason too.

    `force` takes back what may be done at the user's own risk (`Refusal.forced`).
    """
    asked = [item for item in Item if item in set(items)]
    if not asked:
        return {}
    with identity.opened(host) as live:
        found = _refused(target.process, asked, live, force=force)
    return {item: refusal for item, refusal in found.items() if not (force and refusal.forced)}


def _refused(before: Process, items: list[Item], host: Host, *, force: bool) -> dict[Item, Refusal]:
    process, over = _again(before, host)
    if over is not None:
        return dict.fromkeys(items, over)
    out: dict[Item, Refusal] = {}
    if Item.STACKS in items and (refusal := _first(_of_stacks(process))):
        out[Item.STACKS] = refusal
    injected = [item for item in items if item in INJECTED]
    if not injected:
        return out
    if refusal := _first(_of_injection(process, host, force=force)):
        return out | dict.fromkeys(injected, refusal)
    for item in injected:
        if refusal := _first(_of_item(item, process, host)):
            out[item] = refusal
    left = [item for item in injected if item not in out]
    if left and (refusal := _cannot_inject(process, force=force)):
        out |= dict.fromkeys(left, refusal)
    return out


Check = Callable[[], Refusal | None]


def _first(checks: Iterable[Check]) -> Refusal | None:
    return next((refusal for one in checks if (refusal := one()) is not None), None)


def _of_stacks(process: Process) -> list[Check]:
    return [lambda: _access.may_look(process), lambda: _no_python(process), lambda: _py_spy(process)]


def _of_injection(process: Process, host: Host, *, force: bool) -> list[Check]:
    memory: list[Check] = [] if force else [lambda: _room.memory(process)]
    return [
        lambda: _access.may_look(process), lambda: _tracer(process, host), lambda: _no_python(process), lambda: _state(process), *memory,
    ]  # fmt: skip


def _of_item(item: Item, process: Process, host: Host) -> list[Check]:
    out: list[Check] = []
    if item in TORCH:
        out.append(lambda: _no_torch(process))
    if item in CUDA:
        out.append(lambda: _no_cuda(process))
    if item is Item.KERNELS:
        out.append(lambda: _cupti(process, host))
    if item in TRACES:
        out.append(lambda: _room.space(process))
    return out


def _again(before: Process, host: Host) -> tuple[Process, Refusal | None]:
    """The process as it is now, and why nothing can be got of it, where that is so."""
    pid = before.pid
    try:
        now = identity.read(pid, host)
        flags = collector.row_of(pid, identity.stat_of(pid))[collector.FLAGS]
    except (identity.NoProcessError, OSError, ValueError, IndexError):
        return before, _gone(pid)
    if now.start != before.start:
        return before, _gone(pid)
    if now.state in ("Z", "X"):
        return now, _zombie(now)
    return now, _kernel(now) if flags & collector.PF_KTHREAD else None


# --- one question each ------------------------------------------------------------------------


def _gone(pid: int) -> Refusal:
    return Refusal("gone", Text(f"process {pid} has ended", f"进程 {pid} 已结束"))


def _zombie(process: Process) -> Refusal:
    return Refusal(
        "zombie",
        Text(f"process {process.pid} has ended, and its parent {process.parent} has not asked how (a zombie)",
             f"进程 {process.pid} 已结束，但其父进程 {process.parent} 尚未回收（僵尸进程）"),
        Text(f"look at the parent instead: gpudiag profile --pid {process.parent}",
             f"请改看其父进程：gpudiag profile --pid {process.parent}"),
    )  # fmt: skip


def _kernel(process: Process) -> Refusal:
    return Refusal(
        "kernel-thread",
        Text(
            f"process {process.pid} ({process.name}) is a thread of the kernel",
            f"进程 {process.pid}（{process.name}）是内核线程",
        ),
        Text("gpudiag check tells of the kernel and its drivers", "gpudiag check 可诊断内核与驱动"),
    )


def _no_python(process: Process) -> Refusal | None:
    if process.python is not None:
        return None
    return Refusal(
        "no-python",
        Text(f"process {process.pid} ({process.name}) runs no Python interpreter that could be found in it",
             f"进程 {process.pid}（{process.name}）中未发现 Python 解释器"),
        Text("cpu tells of threads, I/O and GPU of any program; for a launcher or a shell, name the ranks that it started",
             "cpu 可用于任何程序的线程、I/O 与 GPU；若它是启动器或 shell，请指定其启动的 rank"),
    )  # fmt: skip


def _py_spy(process: Process) -> Refusal | None:
    python = process.python
    if python is None:
        return None
    if _tools.free_threaded(process):
        return Refusal(
            "free-threaded",
            Text(f"process {process.pid} runs a free-threaded Python ({python.version[0]}.{python.version[1]}t), whose stacks py-spy "
                 "does not read",
                 f"进程 {process.pid} 运行 free-threaded Python（{python.version[0]}.{python.version[1]}t），py-spy 无法读取其调用栈"),
            Text("capture cpu and torch, which do not need py-spy", "请采集 cpu 与 torch，它们不需要 py-spy"),
        )  # fmt: skip
    install = Text(
        "pip install -U py-spy, into the environment of gpudiag", "在 gpudiag 的环境中执行 pip install -U py-spy"
    )
    path = pyspy.program()
    if path is None:
        return replace(pyspy.why("pyspy-missing"), remedy=install)
    version = _tools.py_spy_version(pyspy.version(path))
    if version is not None and python.version > (newest := _tools.newest_read(version)):
        shown, own = ".".join(map(str, version)), ".".join(map(str, python.version))
        most = ".".join(map(str, newest))
        return Refusal(
            "unsupported-version",
            Text(f"py-spy {shown} reads Python up to {most}, and process {process.pid} runs {own}",
                 f"py-spy {shown} 最高支持 Python {most}，而进程 {process.pid} 运行 {own}"),
            install, forced=True,
        )  # fmt: skip
    return None


def _tracer(process: Process, host: Host) -> Refusal | None:
    if not process.tracer:
        return None
    line = " ".join(identity.command(process.tracer, host))[:120]
    who = f"process {process.tracer}" + (f" ({line})" if line else "")
    who_zh = f"进程 {process.tracer}" + (f"（{line}）" if line else "")
    return Refusal(
        "tracer",
        Text(f"process {process.pid} is already traced by {who}, and a process has one tracer at a time",
             f"进程 {process.pid} 正被{who_zh}跟踪，一个进程同时只能有一个跟踪者"),
        Text("let that debugger detach or end first (gdb: detach; strace: Ctrl-C); stacks and cpu can be captured meanwhile",
             "请先让该调试器分离或退出（gdb：detach；strace：Ctrl-C）；期间仍可采集 stacks 与 cpu"),
    )  # fmt: skip


def _state(process: Process) -> Refusal | None:
    state = process.state
    for _ in range(_LOOKS):
        if state not in ("D", "T", "t"):
            return None
        time.sleep(_PAUSE)
        try:
            state = collector.row_of(process.pid, identity.stat_of(process.pid))[collector.STATE]
        except (OSError, ValueError, IndexError):
            return _gone(process.pid)
    if state == "D":
        return Refusal(
            "state-d",
            Text(f"the main thread of process {process.pid} waits in the kernel (state D) and would not run what is asked of it",
                 f"进程 {process.pid} 的主线程在内核中等待（D 状态），无法执行所请求的操作"),
            Text(f"stacks and cpu can be captured; where it waits: sudo cat /proc/{process.pid}/stack; a dead file system or a GPU "
                 "driver that hangs is what gpudiag check finds",
                 f"仍可采集 stacks 与 cpu；查看其等待位置：sudo cat /proc/{process.pid}/stack；失联的文件系统或挂起的 GPU 驱动可用 "
                 "gpudiag check 发现"),
        )  # fmt: skip
    return Refusal(
        "stopped",
        Text(f"process {process.pid} was stopped (by a signal or a terminal) and runs nothing",
             f"进程 {process.pid} 已被（信号或终端）停止，不会执行任何操作"),
        Text(f"if nobody needs it stopped, let it go on: kill -CONT {process.pid}",
             f"若无需保持停止，可让其继续：kill -CONT {process.pid}"),
    )  # fmt: skip


def _cannot_inject(process: Process, *, force: bool) -> Refusal | None:
    from probes.capture.inject import inject  # reads ELF files, and is asked last

    ways = inject.able(process, force=force)
    return ways if isinstance(ways, Refusal) else None


def _no_torch(process: Process) -> Refusal | None:
    if process.python is None or process.python.torch != "absent":
        return None
    return Refusal(
        "no-torch",
        Text(f"process {process.pid} has not loaded PyTorch", f"进程 {process.pid} 未加载 PyTorch"),
        Text("capture stacks and cpu; torch may be loaded later, or in a process that this one starts",
             "请采集 stacks 与 cpu；torch 可能稍后加载，或在其子进程中加载"),
    )  # fmt: skip


def _no_cuda(process: Process) -> Refusal | None:
    if process.python is None or process.python.cuda:
        return None
    return Refusal("no-cuda", Text(f"process {process.pid} uses no CUDA: it has no kernels and no device memory",
                                   f"进程 {process.pid} 未使用 CUDA：没有 kernel，也没有显存"))  # fmt: skip


def _cupti(process: Process, host: Host) -> Refusal | None:
    by = _tools.profiled_by(process, host)
    if not by:
        return None
    return Refusal(
        "cupti-taken",
        Text(f"process {process.pid} is under another profiler of CUDA ({by}); CUPTI serves one at a time, so no kernel would be in the "
             "trace",
             f"进程 {process.pid} 正处于另一 CUDA profiler 之下（{by}）；CUPTI 同时只服务一个使用者，因此 trace 中不会有 kernel"),
        Text("use that profiler's own report (gpudiag trace reads nsys and ncu exports), or start the job without it; --force captures "
             "the host's side all the same",
             "请使用该 profiler 自身的报告（gpudiag trace 可读取 nsys 与 ncu 的导出），或不带它启动作业；--force 仍可采集主机侧"),
        forced=True,
    )  # fmt: skip
