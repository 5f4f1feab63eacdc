"""What "explain this" asks about a trace: of each phase, kernel, function, step and rank a question that is understood.

The sentences are of the kind that ``knowledge/data/bottlenecks.yaml`` knows, so that the answer holds what was measured.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.intent.query import Query

WORST = Text("which kernel is the worst?", "哪个 kernel 最耗时？")
WHERE = Text("where does the time go?", "时间都花在哪了？")
BOUND = Text("what bounds my job?", "我的任务受什么限制？")
WAITS = Text("what does the gpu wait for?", "GPU 在等什么？")
STEPS = Text("which step is the slowest?", "哪一步最慢？")
STRAGGLER = Text("which rank is the straggler?", "哪个 rank 最慢？")
FUNCTION = Text("which function takes the most time?", "哪个函数最耗时？")
LOADER = Text("is the data loader the problem?", "是数据加载的问题吗？")
COMPUTE = Text("is it compute bound?", "是计算受限吗？")
NCCL = Text("how much of the time is communication?", "通信占多少时间？")
COPIES = Text("is it the copies?", "是不是拷贝的问题？")
SYNC = Text("how much do we lose to synchronization?", "同步占多少时间？")
LAUNCH = Text("is it launch bound?", "是不是下发受限？")
HOST = Text("is it python that holds the gpu up?", "是不是 Python 太慢？")
FUSE = Text("would fusing kernels help?", "融合 kernel 能省多少？")
OPTIMIZER = Text("how much time goes to the optimizer?", "优化器占多少时间？")
MEMORY = Text("is it memory bound?", "是访存受限吗？")
CHECKPOINT = Text("does checkpointing slow it down?", "是不是 checkpoint 拖慢了训练？")
FRAGMENTS = Text("is the gpu memory fragmented?", "是不是显存碎片的问题？")
GIL = Text("is it the GIL?", "是 GIL 的问题吗？")

_PHASES = {
    "compute": COMPUTE, "comm": NCCL, "exposed_comm": NCCL, "mem": COPIES, "exposed_mem": COPIES, "idle": WAITS,
    "data_loader": LOADER, "sync": SYNC, "host": HOST, "launch": LAUNCH, "kernel": WAITS, "unknown": WAITS,
}  # fmt: skip
_CLASSES = {
    "communication": NCCL, "copy": COPIES, "optimizer": OPTIMIZER, "elementwise": FUSE, "reduction": FUSE, "norm": FUSE,
    "softmax": FUSE, "random": FUSE, "quantise": FUSE, "gemm": COMPUTE, "convolution": COMPUTE, "attention": COMPUTE,
    "rnn": COMPUTE, "moe": COMPUTE, "embedding": MEMORY, "index": MEMORY,
}  # fmt: skip
_ACTIVITIES = {
    "data": LOADER, "collective": NCCL, "sync": SYNC, "optimizer": OPTIMIZER, "checkpoint": CHECKPOINT, "gil": GIL, "python": HOST,
}  # fmt: skip
# Functions, annotations and operators by what their names hold; the first that fits.
_NAMES = (
    (re.compile(r"dataloader|data_?loader|_next_data|collate|__getitem__", re.IGNORECASE), LOADER),
    (re.compile(r"optimi[sz]er|adam|\bsgd\b|foreach_", re.IGNORECASE), OPTIMIZER),
    (re.compile(r"nccl|all_?reduce|all_?gather|reduce_?scatter|broadcast|c10d|\bdist\b", re.IGNORECASE), NCCL),
    (re.compile(r"synchroni[sz]e|aten::item|_local_scalar_dense|\bitem\(", re.IGNORECASE), SYNC),
    (re.compile(r"checkpoint|torch\.save|save_pretrained", re.IGNORECASE), CHECKPOINT),
    (re.compile(r"memcpy|memset|aten::copy_|aten::_?to\b|_to_copy", re.IGNORECASE), COPIES),
    (re.compile(r"launchkernel|graphlaunch", re.IGNORECASE), LAUNCH),
)


def named_kernel(name: str) -> Text:
    """Of one kernel, by its name."""
    return Text(f"how much time does kernel {name} take?", f"kernel {name} 占用多少时间？")


def named_operator(name: str) -> Text:
    """Of one operator, by its name."""
    return Text(f"how much time does operator {name} take?", f"算子 {name} 占用多少时间？")


def query_of(kind: str, name: str, lang: str) -> Query:
    """The same as it is to be understood: names may hold any words. `kind`: ``kernel`` or ``operator``."""
    from assistant.intent.echo import echo
    from assistant.intent.query import Intent, Query, Slots

    said = (named_kernel if kind == "kernel" else named_operator)(excerpt(name, 120))
    slots = Slots(kernel=(name,)) if kind == "kernel" else Slots(operator=(name,))
    return echo(Query(said.in_(lang), lang, Intent.DIAGNOSE, slots))


def phase(key: str) -> Text:
    """Of a part of the time: a field of the breakdown without its ``_ns``."""
    return _PHASES.get(key, WHERE)


def kernel(name: str, kind: str) -> Text:
    """Of a kernel, by its class."""
    if name.startswith("Mem"):
        return COPIES
    return _CLASSES.get(kind, WORST)


def frame(name: str, kind: str) -> Text:
    """Of a frame of a flame graph, by its kind and what its name holds."""
    if kind == "kernel":
        from probes.trace.names.classify import kernel_class

        return kernel(name, str(kernel_class(name)))
    if kind == "copy":
        return COPIES
    for pattern, question in _NAMES:
        if pattern.search(name):
            return question
    if kind in ("python", "frame"):
        return HOST if kind == "python" else FUNCTION
    return WORST if kind in ("op", "module") else LAUNCH if kind == "runtime" else WHERE


def activity(fact: str) -> Text:
    """Of what a process did while it was captured: the share of its window that a fact tells."""
    return next((question for part, question in _ACTIVITIES.items() if part in fact), FUNCTION)


def step(number: int) -> Text:
    """Of one iteration."""
    return Text(f"why is step {number} slow?", f"为什么第 {number} 步慢？")


def rank(number: int) -> Text:
    """Of one rank."""
    return Text(f"why is rank {number} late?", f"为什么 rank {number} 慢？")


def finding(id: str) -> Text:
    """Of something that was found."""
    return Text(f"why {id}?", f"为什么 {id}？")
