"""What the agent in a target says, in words for people: its codes are stable, its details are English."""

from __future__ import annotations

from knowledge.language import Text
from knowledge.text import excerpt
from probes.capture.model import Refusal

_GENTLE = Text("capture stacks and cpu, which run nothing in it", "改为采集 stacks 与 cpu，它们不在目标内运行任何代码")
_SAID: dict[str, tuple[Text, Text, bool]] = {
    "no-torch": (Text("PyTorch is not loaded in the process", "该进程未加载 PyTorch"), _GENTLE, False),
    "torch-importing": (
        Text("PyTorch is just being imported", "PyTorch 正在导入中"),
        Text("wait until the job has begun", "请等待任务开始后再试"),
        False,
    ),
    "torch-too-old": (Text("its PyTorch has no profiler that can be used from outside", "其 PyTorch 没有可从外部使用的 profiler"), _GENTLE, False),
    "profiler-active": (
        Text("the job uses torch.profiler itself, and there is one profiler in a process", "任务自身正在使用 torch.profiler，而一个进程只有一个 profiler"),
        Text("take the traces that it writes, or capture when its profile has ended", "使用其自身写出的 trace，或待其结束后再采集"),
        False,
    ),
    "busy": (
        Text("another capture runs in the process", "该进程内已有另一次采集在进行"),
        Text("wait until it has ended", "请等待其结束"),
        False,
    ),
    "cuda-graphs": (
        Text("the job has captured CUDA graphs, and before CUDA 12.6 ending a profile can crash such a process", "任务已捕获 CUDA graph，CUDA 12.6 之前结束采集可能使进程崩溃"),
        Text("capture torch without kernels; --force captures all the same", "只采集 torch、不采集 kernels；--force 可强制采集"),
        True,
    ),
    "no-cuda": (Text("the process has not begun to use CUDA, and it is not begun for a capture", "该进程尚未使用 CUDA，采集不会替它初始化"), Text(""), False),
    "anchor-unknown": (
        Text("the anchor was not found in the process", "目标进程中未找到该锚点"),
        Text("write it as module:function or module:Class.method, as the process has imported it", "请写作 module:function 或 module:Class.method，与进程内导入的名字一致"),
        False,
    ),
    "anchor-native": (Text("the anchor is no Python function", "该锚点不是 Python 函数"), Text("name the Python function that calls it", "请指定调用它的 Python 函数"), False),
    "anchor-generator": (
        Text("the anchor is a generator or coroutine, which needs Python 3.12 in the job", "该锚点是生成器或协程，需要任务使用 Python 3.12"),
        Text("name a function that returns once an iteration", "请指定每次迭代返回一次的函数"),
        False,
    ),
    "monitoring-in-use": (
        Text("other tools use all free numbers of sys.monitoring in the process", "其他工具已占用该进程 sys.monitoring 的全部空闲编号"),
        Text("capture a duration without an anchor", "请改为按时长采集，不指定锚点"),
        False,
    ),
    "no-anchor": (
        Text("no iteration ended in the time that was waited", "等待期间没有任何迭代结束"),
        Text("capture a duration; or name the function that ends an iteration with --anchor", "请按时长采集，或用 --anchor 指定迭代结束的函数"),
        False,
    ),
    "optimizer-compiled": (
        Text("the optimizer's step is compiled (torch.compile): a hook in it would make torch compile it again, which stalls the job",
             "优化器的 step 已由 torch.compile 编译：在其中加入钩子会触发重新编译并使作业停顿"),
        Text("capture a duration; or name a function that is not compiled with --anchor", "请按时长采集，或用 --anchor 指定未被编译的函数"),
        False,
    ),
    "patience": (
        Text("the iterations asked for did not come in the time that was waited", "等待期间未完成所要求的迭代数"),
        Text("ask for fewer iterations, or capture a duration", "请减少迭代数，或按时长采集"),
        False,
    ),
    "profiler-left-on": (
        Text("the job's loop stands still, and with its PyTorch only the thread of the loop can end the profiler: it does so when it goes on", "任务的循环停住了；其 PyTorch 只允许该线程结束 profiler，循环继续时会自动结束"),
        Text("look at the job's stacks: it may hang", "请查看任务的调用栈：可能已挂起"),
        False,
    ),
    "stopped": (Text("the capture was cancelled", "采集已取消"), Text(""), False),
    "stopped-early": (Text("the capture was cancelled", "采集已取消"), Text(""), False),
    "gone": (Text("the process or its folder went away during the capture", "采集期间进程或其目录消失"), Text(""), False),
    "internal": (Text("the capture failed within the process", "进程内的采集失败"), _GENTLE, False),
}  # fmt: skip
ACTIVE = frozenset(
    {"internal", "gone", "no-anchor", "patience", "profiler-left-on"}
)  # failures; the other codes are refusals


def refusal(code: str, words: str = "") -> Refusal:
    """Of a code of the agent; its words are shown behind the sentence."""
    why, remedy, forced = _SAID.get(code, _SAID["internal"])
    detail = excerpt(words, 300) if words else code if code not in _SAID else ""
    if detail:
        why = Text(f"{why.en}: {detail}", f"{why.zh}：{detail}")
    return Refusal(code, why, remedy, forced)


def cut(captured_ns: int, wish_ns: int, events: int) -> Text:
    """The window was cut to keep the stop short."""
    share, whole = captured_ns / 1e6, wish_ns / 1e6
    return Text(f"{share:.0f} of {whole:.0f} ms: the job makes so many events that more than {events} would stall it when the profiler stops",
                f"{whole:.0f} ms 中的 {share:.0f} ms：任务事件过多，超过 {events} 个会在 profiler 停止时卡住任务")  # fmt: skip


def fewer(captured: int, wish: int, events: int) -> Text:
    """Fewer iterations than asked for, for the same reason."""
    return Text(f"{captured} of {wish} iterations: they make so many events that more than {events} would stall the job when the profiler stops",
                f"{wish} 次迭代中的 {captured} 次：事件过多，超过 {events} 个会在 profiler 停止时卡住任务")  # fmt: skip


NO_KERNELS = Text("the trace holds no kernels: nothing ran on the GPU in this window, or another tool (nsys, ncu) has CUPTI, which serves one",
                  "trace 中没有 kernel：此窗口内 GPU 未运行任何任务，或 CUPTI 被其他工具（nsys、ncu）占用，而它只服务一个工具")  # fmt: skip
CANCELLED_EARLY = Text("ended early: it was cancelled", "提前结束：采集被取消")
NO_STEPS = Text("no iteration ended in the window", "窗口内没有迭代结束")
NO_LOSS = Text("no readable local of that name is at the anchor", "锚点处没有可读取的同名局部变量")
NO_NORM = Text("no plain gradients are at the anchor: it is no optimizer's step, or they are distributed tensors",
               "锚点处没有普通梯度：它不是优化器的 step，或梯度是分布式张量")  # fmt: skip
NOT_TAKEN = Text("its files could not be taken", "无法取回其文件")
