"""Why nothing is injected, in both languages: one entry a code. Codes are stable, for tests and JSON."""

from __future__ import annotations

from knowledge.language import Text
from probes.capture.model import Refusal

_NONE = ("", "")
_FORCED = frozenset({"state-d"})
# code: (why, remedy), each in English and Chinese; {detail} is filled in
_SAID: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "gone": (("The process has ended{detail}.", "该进程已结束{detail}。"), _NONE),
    "zombie": (("The process has ended and waits for its parent to notice.", "该进程已结束,正等待父进程回收(僵尸)。"), _NONE),
    "stopped": (
        ("The process is stopped: it would not run what is asked of it.", "该进程处于停止状态,不会执行注入的代码。"),
        ("Let it go on (kill -CONT PID), then capture again.", "先让它继续运行(kill -CONT PID),再重新采集。"),
    ),
    "state-d": (
        ("Its main thread waits in the kernel (state D){detail}: a call would stay queued.",
         "其主线程在内核中等待(D 状态){detail},注入的调用会一直排队。"),
        ("Look for the file system or device that it waits for.", "检查它正在等待的文件系统或设备。"),
    ),
    "tracer": (
        ("Another program traces it already{detail}.", "已有其他程序正在跟踪它{detail}。"),
        ("End that debugger, strace or profiler first.", "请先结束该调试器、strace 或分析器。"),
    ),
    "no-python": (
        ("There is no Python interpreter that can be used{detail}.", "没有可用的 Python 解释器{detail}。"), _NONE,
    ),
    "no-pending-call": (
        ("Its interpreter does not show what is needed to ask it for a call{detail}.", "其解释器没有暴露注入调用所需的内容{detail}。"),
        ("Capture stacks instead: they need nothing of it.", "改为采集调用栈:无需注入。"),
    ),
    "free-threaded": (
        ("Its Python has no global interpreter lock; injection into such builds is not proven safe.",
         "该 Python 为无 GIL 的构建;对此类构建的注入尚未证明安全。"),
        ("Capture stacks instead; from Python 3.14 on sys.remote_exec works with such builds.",
         "改为采集调用栈;Python 3.14 起可通过 sys.remote_exec 采集此类构建。"),
    ),
    "arch": (
        ("Borrowing a thread with ptrace is written and proven for x86-64 without shadow stacks alone{detail}.",
         "通过 ptrace 借用线程仅在不启用影子栈的 x86-64 上实现并验证{detail}。"),
        ("The other ways work: sys.remote_exec (Python 3.14), gdb, stacks.",
         "其他方式可用:sys.remote_exec(Python 3.14)、gdb、调用栈。"),
    ),
    "no-permission": (
        ("It may not be traced{detail}.", "无权跟踪该进程{detail}。"),
        ("Run gpudiag as the same user, or as root, or with CAP_SYS_PTRACE (in a container: --cap-add SYS_PTRACE).",
         "以相同用户或 root 运行 gpudiag,或授予 CAP_SYS_PTRACE(容器中:--cap-add SYS_PTRACE)。"),
    ),
    "yama": (
        ("The kernel's Yama module forbids tracing{detail}.", "内核的 Yama 模块禁止跟踪{detail}。"),
        ("Run gpudiag as root or with CAP_SYS_PTRACE, or allow it: sysctl kernel.yama.ptrace_scope=0 (3 stays until reboot).",
         "以 root 或 CAP_SYS_PTRACE 运行,或放开限制:sysctl kernel.yama.ptrace_scope=0(值为 3 时重启前无法更改)。"),
    ),
    "remote-debug-off": (
        ("Remote debugging is switched off in it{detail}.", "该进程关闭了远程调试{detail}。"),
        ("Start it without PYTHON_DISABLE_REMOTE_DEBUG and -X disable_remote_debug.",
         "启动时不要设置 PYTHON_DISABLE_REMOTE_DEBUG 或 -X disable_remote_debug。"),
    ),
    "queue-full": (
        ("Calls asked of it before still wait to be run{detail}.", "之前请求的调用仍在排队{detail}。"),
        ("Its main thread does not come back to Python: treat it as hung (gpudiag profile never injects into a hung job).",
         "其主线程没有回到 Python:请按挂起处理(对挂起的作业绝不注入)。"),
    ),
    "no-answer": (
        ("It did not run the call in time{detail}. It stays queued and does nothing once its files are gone.",
         "它没有在限定时间内执行该调用{detail}。该调用仍在排队,文件删除后不再起作用。"),
        ("Its main thread is busy outside of Python or waits: capture stacks to see where.",
         "其主线程正忙于 Python 之外的工作或在等待:采集调用栈查看位置。"),
    ),
    "failed": (("Injection failed and was undone{detail}.", "注入失败并已撤销{detail}。"), _NONE),
}  # fmt: skip
CODES = frozenset(_SAID)


class InjectError(Exception):
    """Nothing was injected, or nothing came of it; `refusal` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why.en)
        self.refusal = refusal


def refusal(code: str, detail: str = "", zh: str = "") -> Refusal:
    """The refusal of a code; `detail` is a clause without a full stop, in both languages where it is a sentence."""
    why, remedy = _SAID[code]
    said = Text(
        why[0].format(detail=f" ({detail})" if detail else ""),
        why[1].format(detail=f"({zh or detail})" if detail else ""),
    )
    return Refusal(code, said, Text(*remedy), code in _FORCED)


def refuse(code: str, detail: str = "", zh: str = "") -> InjectError:
    """The same as an error to raise."""
    return InjectError(refusal(code, detail, zh))
