"""Whether a target was left as it was found: how it stood before and after, compared.

What is known to stay is told and is no worry: a thread of kineto and the memory of torch's profiler (facts of captures).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from knowledge.language import Text
from probes.capture.model import Aftermath, Process, Vital
from probes.capture.whom import identity
from probes.collectors import processes as collector

PATIENCE = 1.5  # seconds for what is only slow to end: a thread, a descriptor, the stop of another tool
PAUSE = 0.1
RATE_NS = 500_000_000  # between two looks at the CPU's clock, whose ticks are 10 ms
STAYS = 1  # threads of kineto after the first capture with the profiler
OWN_THREADS = 4  # more than this come from nobody's loader or pool by chance within a window
OWN_DESCRIPTORS = 8
TOLD_GROWTH = 16 << 20  # bytes: less is how any allocator breathes
# A job whose iterations take a quarter more after than before has been harmed, unless it changed its work: captures cost
# under 5 % outside of their window (docs/profile.md). Below a millisecond the clock of a busy machine says nothing.
SLOWER, LEAST_NS = 1.25, 1_000_000
BUSY, LESS = 0.3, 0.5  # cores before; share of them after
_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def vital(process: Process) -> Vital:
    """How the process stands now. One that has ended, or whose pid is another's now, is not alive."""
    at = time.monotonic_ns()
    try:
        row = collector.row_of(process.pid, identity.stat_of(process.pid))
        status = identity.status_of(process.pid)
    except (OSError, ValueError, IndexError):
        return _ended(at)
    if row[collector.START] != process.start:
        return _ended(at)
    state = str(row[collector.STATE])
    return Vital(
        at=at, state=state, tracer=_number(status, "TracerPid"), threads=row[collector.THREADS],
        descriptors=_descriptors(process.pid), cpu_ticks=row[collector.CPU],
        switches=_number(status, "voluntary_ctxt_switches") + _number(status, "nonvoluntary_ctxt_switches"),
        resident=row[collector.RSS] * _PAGE, alive=state not in ("Z", "X"),
        thread_names=tuple(sorted(identity.thread_names(process.pid))),
    )  # fmt: skip


def cores(first: Vital | None, second: Vital | None) -> float | None:
    """CPUs used between two looks; None where they tell nothing."""
    if first is None or second is None or not (first.alive and second.alive) or second.at <= first.at:
        return None
    return max(0, second.cpu_ticks - first.cpu_ticks) / _TICKS / ((second.at - first.at) / 1e9)


def remains(process: Process, marks: Sequence[str]) -> tuple[str, ...]:
    """Descriptors and threads of the process that name one of `marks` (the guest's folder, its thread): what is still ours."""
    found = []
    folder = f"/proc/{process.pid}/fd"
    with suppress(OSError):
        for name in sorted(os.listdir(folder), key=int):  # noqa: PTH208
            with suppress(OSError):
                path = os.readlink(f"{folder}/{name}")  # noqa: PTH115
                if any(mark in path for mark in marks):
                    found.append(f"descriptor {name}: {path}")
    found += [f"thread {name}" for name in identity.thread_names(process.pid) if any(mark in name for mark in marks)]
    return tuple(found)


def settle(
    process: Process, before: Vital, *, injected: bool = False, marks: Sequence[str] = (), patience: float = PATIENCE,
    earlier: Vital | None = None, iteration_before_ns: int | None = None, iteration_after_ns: int | None = None,
    longest_ns: int | None = None,
) -> Aftermath:  # fmt: skip
    """`compare` with how the process stands now; looks again for up to `patience` seconds before it worries.

    `earlier`: a look at it some time before `before`: then its use of the CPU is compared too, which takes half a second.
    """
    until = time.monotonic() + patience
    after = vital(process)
    while True:
        now = vital(process)
        found = compare(
            before, now, injected=injected, remaining=remains(process, marks) if marks else (),
            rates=(cores(earlier, before), cores(after, now) if now.at - after.at >= RATE_NS else None),
            iteration_before_ns=iteration_before_ns, iteration_after_ns=iteration_after_ns, longest_ns=longest_ns,
        )  # fmt: skip
        measured = earlier is None or now.at - after.at >= RATE_NS
        if (found.clean and measured) or not now.alive or time.monotonic() >= until:
            return found
        time.sleep(PAUSE)


def compare(
    before: Vital, after: Vital, *, injected: bool = False, remaining: Sequence[str] = (),
    rates: tuple[float | None, float | None] = (None, None), iteration_before_ns: int | None = None,
    iteration_after_ns: int | None = None, longest_ns: int | None = None,
) -> Aftermath:  # fmt: skip
    """What became of a target. Pure.

    `injected`: the profiler ran in it. `remaining`: see `remains`. `rates`: cores used before and after. Iterations are medians.
    """
    left: list[Text] = []
    worries: list[Text] = []
    if before.alive and not after.alive:
        worries.append(_GONE)
    elif after.alive:
        worries += _standing(before, after)
        worries += _slower(rates, iteration_before_ns, iteration_after_ns)
        worries += [_remains(remaining)] if remaining else []
        for told, worry in (_threads(before, after, injected=injected), _descriptors_more(before, after)):
            (worries if worry else left).extend(told)
        left += _memory(before, after)
    return Aftermath(before, after, tuple(left), tuple(worries), iteration_before_ns, iteration_after_ns, longest_ns)


# --- one question each ------------------------------------------------------------------------

_GONE = Text(
    "the process ended during the capture or right after it; it may have come to its own end: look at its exit code and its last "
    "output, and in the kernel's log (dmesg) for a fault or the OOM killer",
    "该进程在采集期间或刚结束后退出；也可能是自行结束：请查看其退出码与最后输出，并在内核日志（dmesg）中查找故障或 OOM 记录",
)


def _standing(before: Vital, after: Vital) -> list[Text]:
    out = []
    if after.tracer and after.tracer != before.tracer:
        out.append(
            Text(f"process {after.tracer} traces it now, which was not so before: if it is a tool of this capture, end it "
                 f"(kill {after.tracer}); the kernel then lets the target go on",
                 f"进程 {after.tracer} 现在正跟踪它，而之前没有：若属本次采集的工具，请结束它（kill {after.tracer}），内核随后会放行目标进程")
        )  # fmt: skip
    if after.state in ("T", "t") and before.state not in ("T", "t"):
        out.append(
            Text("it is stopped, and was not before: kill -CONT with its pid lets it go on",
                 "它处于停止状态，而之前没有：对其 pid 执行 kill -CONT 可使其继续")
        )  # fmt: skip
    return out


def _slower(rates: tuple[float | None, float | None], before_ns: int | None, after_ns: int | None) -> list[Text]:
    if before_ns and after_ns:
        if after_ns > before_ns * SLOWER and after_ns - before_ns > LEAST_NS:
            old, new = before_ns / 1e6, after_ns / 1e6
            return [
                Text(f"an iteration takes {new:.1f} ms, and took {old:.1f} ms before the capture: watch whether that stays; what the "
                     "job does may have changed by itself",
                     f"采集后每次迭代耗时 {new:.1f} ms，采集前为 {old:.1f} ms：请观察是否持续；也可能是作业自身变化")
            ]  # fmt: skip
        return []  # iterations tell better than the CPU does
    old_cores, new_cores = rates
    if old_cores is not None and new_cores is not None and old_cores >= BUSY and new_cores < old_cores * LESS:
        return [
            Text(f"it uses {new_cores:.2f} cores, and used {old_cores:.2f} before the capture: see whether it still makes progress "
                 "(its log, gpudiag profile --with stacks)",
                 f"采集后使用 {new_cores:.2f} 个核，采集前为 {old_cores:.2f}：请确认其是否仍在推进（查看日志，或 gpudiag profile --with stacks）")
        ]  # fmt: skip
    return []


def _remains(remaining: Sequence[str]) -> Text:
    shown = ", ".join(remaining[:5])
    return Text(f"something of the capture is still in it: {shown}; it is gone when the process ends, please report it",
                f"采集的残留仍在其中：{shown}；进程结束后即消失，请报告此问题")  # fmt: skip


def _threads(before: Vital, after: Vital, *, injected: bool) -> tuple[list[Text], bool]:
    """What to say of more threads, and whether it is a worry."""
    more = after.threads - before.threads
    if more <= 0:
        return [], False
    if injected and more <= STAYS:
        return [Text("one thread of torch's profiler (kineto) stays until the process ends, as after any profile; it sleeps",
                     "torch profiler（kineto）的一个线程会保留至进程结束，任何 profile 之后都如此；它处于休眠状态")], False  # fmt: skip
    names = Counter(after.thread_names) - Counter(before.thread_names)
    shown = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in names.most_common(5)) or "?"
    worry = more > OWN_THREADS + (STAYS if injected else 0)
    ask = "; what they do: py-spy dump" if worry else ""
    ask_zh = "；可用 py-spy dump 查看其行为" if worry else ""
    return [Text(f"it has {more} threads more than before ({shown}), which the job may have started itself{ask}",
                 f"线程比之前多 {more} 个（{shown}），可能由作业自身启动{ask_zh}")], worry  # fmt: skip


def _descriptors_more(before: Vital, after: Vital) -> tuple[list[Text], bool]:
    if before.descriptors < 0 or after.descriptors <= before.descriptors:
        return [], False
    more = after.descriptors - before.descriptors
    worry = more > OWN_DESCRIPTORS
    ask = "; what they are: ls -l /proc/PID/fd" if worry else ""
    ask_zh = "；可用 ls -l /proc/PID/fd 查看" if worry else ""
    return [Text(f"it has {more} descriptors more open than before, which the job may have opened itself{ask}",
                 f"打开的描述符比之前多 {more} 个，可能由作业自身打开{ask_zh}")], worry  # fmt: skip


def _memory(before: Vital, after: Vital) -> list[Text]:
    more = after.resident - before.resident
    if more < TOLD_GROWTH:
        return []
    return [Text(f"it holds {more >> 20} MiB more memory than before: what the profiler took is kept for its next use, and does not "
                 "grow with further captures of the same size",
                 f"其内存比之前多 {more >> 20} MiB：profiler 占用的内存会留待下次使用，相同规模的后续采集不会继续增长")]  # fmt: skip


def _ended(at: int) -> Vital:
    return Vital(at, "", 0, 0, -1, 0, 0, 0, alive=False)


def _number(status: dict[str, str], name: str) -> int:
    text = status.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _descriptors(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except OSError:
        return -1
