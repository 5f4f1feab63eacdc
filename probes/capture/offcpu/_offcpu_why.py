"""Why the kernel's own view of threads could not be had, in plain words, and what gives it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from knowledge.language import Text
from knowledge.observation import Status
from probes.capture.model import Refusal

PARANOID: Final = "/proc/sys/kernel/perf_event_paranoid"
POINTERS: Final = "/proc/sys/kernel/kptr_restrict"
_SIGNS: Final = (
    ("ended", r"No such process"),
    ("bpf-not-permitted", r"only supports running as the root user|CAP_BPF|unprivileged"),
    ("not-permitted", r"[Aa]ccess to performance monitoring|No permission|Permission denied|Operation not permitted|can't access trace events"),
    ("too-many", r"Too many open files|Cannot allocate memory|failed to mmap"),
    ("old-perf", r"unknown option|invalid control option|unrecognized option"),
    ("no-event", r"unknown tracepoint|event syntax error|Unable to find|not supported|No such device"),
    ("no-probe", r"No probes to attach|Could not resolve symbol|Code generation|tracepoint not found"),
)  # fmt: skip


def code_of(said: str) -> str:
    """What kind of failure the messages of perf or bpftrace tell: a key of `why`."""
    return next((code for code, pattern in _SIGNS if re.search(pattern, said)), "failed")


def setting(path: str) -> str:
    """A setting of the kernel; "?" when it cannot be read."""
    with suppress(OSError):
        return Path(path).read_text("ascii", "replace").strip()[:20]
    return "?"


def why(code: str, detail: str = "", paranoid: str | None = None) -> Refusal:
    """The sentence for a kind of failure; `detail`: the tool's own words. `paranoid`: the setting, by default as it is now."""
    level = setting(PARANOID) if paranoid is None else paranoid
    match code:
        case "missing":
            return Refusal(code, Text("neither perf nor bpftrace is installed", "未安装 perf 与 bpftrace"),
                           Text("install perf (package linux-perf, linux-tools or perf) or bpftrace", "安装 perf（软件包 linux-perf、linux-tools 或 perf）或 bpftrace"))  # fmt: skip
        case "bpftrace-missing":
            return Refusal(
                code,
                Text("bpftrace is not installed", "未安装 bpftrace"),
                Text("install the package bpftrace", "安装软件包 bpftrace"),
            )
        case "not-permitted":
            return Refusal(
                code,
                Text(f"the kernel does not permit perf here: perf_event_paranoid is {level}, and CAP_PERFMON is missing", f"内核不允许在此使用 perf：perf_event_paranoid 为 {level}，且缺少 CAP_PERFMON"),
                Text("run as root, in a container with --cap-add PERFMON (SYS_ADMIN before Linux 5.8); or: sysctl kernel.perf_event_paranoid=-1", "以 root 运行，容器内加 --cap-add PERFMON（Linux 5.8 之前为 SYS_ADMIN）；或执行：sysctl kernel.perf_event_paranoid=-1"),
            )  # fmt: skip
        case "busy":
            return Refusal(
                code,
                Text(f"its threads are switched {detail or 'very many'} times a second, which perf would slow: they were looked at 50 times a second instead", f"其线程每秒切换 {detail or '极多'} 次，perf 会使其变慢：改为每秒查看 50 次"),
                Text("waits shorter than 20 ms are estimated", "短于 20 毫秒的等待为估计值"),
            )  # fmt: skip
        case "no-stacks":
            return Refusal(
                code,
                Text("the kernel's functions in which threads wait could not be read", "无法读取线程等待所在的内核函数"),
                Text("run as root: /proc/PID/stack needs CAP_SYS_ADMIN, /proc/PID/wchan CAP_SYS_PTRACE or the process's user", "以 root 运行：/proc/PID/stack 需要 CAP_SYS_ADMIN，/proc/PID/wchan 需要 CAP_SYS_PTRACE 或进程所属用户"),
            )  # fmt: skip
        case "no-symbols":
            pointers = setting(POINTERS)
            return Refusal(
                code,
                Text(f"the kernel's functions have no names: kptr_restrict is {pointers}, and CAP_SYSLOG is missing", f"内核函数没有名称：kptr_restrict 为 {pointers}，且缺少 CAP_SYSLOG"),
                Text("run as root, or: sysctl kernel.kptr_restrict=0", "以 root 运行，或执行：sysctl kernel.kptr_restrict=0"),
            )  # fmt: skip
        case "bpf-not-permitted":
            return Refusal(code, Text("bpftrace needs root in the initial namespaces", "bpftrace 需要初始命名空间中的 root"),
                           Text("run as root on the host, not in a container", "请在宿主机上以 root 运行，而不是在容器内"))  # fmt: skip
        case "too-many":
            return Refusal(code, Text("perf could not open its events: too many threads for the limit of open files or locked memory", "perf 无法打开事件：线程过多，超出打开文件或锁定内存的限制"),
                           Text("raise `ulimit -n` and `ulimit -l`, or name fewer processes", "提高 `ulimit -n` 与 `ulimit -l`，或减少目标进程"))  # fmt: skip
        case "old-perf":
            return Refusal(
                code, Text("this perf is too old: 5.10 or newer is needed", "perf 版本过旧：需要 5.10 或更新")
            )
        case "no-event":
            return Refusal(code, Text("the kernel offers no event for switches of threads", "内核未提供线程切换事件"))
        case "ended":
            return Refusal(code, Text("the process has ended", "进程已结束"))
        case "nothing":
            return Refusal(code, Text("no switch of a thread was recorded", "未记录到任何线程切换"))
        case "no-library":
            return Refusal(
                code,
                Text(
                    "the process has none of the libraries mapped whose calls were to be counted",
                    "该进程未映射需要统计调用的库",
                ),
            )
        case "no-probe":
            return Refusal(code, Text("no probe could be set on the functions", "无法在这些函数上设置探针"))
        case "timeout":
            return Refusal(code, Text("the tool did not answer in time", "该工具未在限时内应答"))
    tail = f": {detail}" if detail else ""
    return Refusal(code, Text(f"it failed{tail}", f"失败{tail}"))


def status(code: str) -> Status:
    """How an observation says that there is nothing."""
    return {
        "not-permitted": Status.DENIED, "bpf-not-permitted": Status.DENIED, "no-stacks": Status.DENIED, "no-symbols": Status.DENIED,
        "timeout": Status.TIMEOUT, "missing": Status.UNSUPPORTED, "bpftrace-missing": Status.UNSUPPORTED, "old-perf": Status.UNSUPPORTED,
        "no-event": Status.UNSUPPORTED, "no-library": Status.NOT_APPLICABLE,
    }.get(code, Status.FAILED)  # fmt: skip
