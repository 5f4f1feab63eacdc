"""Questions about what GPUs do, asked of counters that were read: is it working, could it be faster, who wastes or shares it, what holds it up.

The classes of the counters answer, with the finding that rests on them, and those that hold the GPUs where a file names them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.diagnosis import bad_roots, only_said
from assistant.dialogue._counters import BUSY
from assistant.dialogue._scope import scoped
from assistant.dialogue._words import Words, suggest, words
from assistant.render.labels import listed, titled
from assistant.render.sheet import Items, Part
from assistant.render.working import at_work, does
from assistant.reply import Reply
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import Scope, Status, Subject
from rules.model import Severity

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.dialogue import Turn
    from assistant.intent.query import Query
    from rules.engine import Finding

_CLASS = "gpu.work.class"
_GOOD = ("tensor_bound", "memory_bound", "working")
_IDLE = ("held_idle", "allocated_idle", "idle")
_HELD_UP = (
    "busy_idle",
    "latency_bound",
    "pcie_bound",
    "nvlink_bound",
    "in_waves",
    "throttled",
    "fp32_bound",
    "fp64_bound",
)
_HOLDERS = 6  # names of one answer
# What is asked, the first that fits. Whose a thing is goes ahead of how well it is used.
_KINDS = {
    "who": lazy(
        r"(?<![a-z])(?:who(?:se|'s)? (?:is |are |has |have )?(?:shar\w+|hold\w*|us(?:es|ing)|own\w*|wast\w*|occup\w+|hog\w*|tak\w+|on|sitting|keep\w*|block\w*|running|idle|gpus?)|(?:which|what|whose) (?:process(?:es)?|pods?|jobs?|users?|containers?|programs?|team)(?! (?:crash|fail|hang|died))|(?:process|job|pod|program)\w* (?:that is |that are |which is )?hold\w*)"
        r"|谁[^，。？]{0,6}(?:占|用|共享|浪费|霸|挤|跑|的)|(?:哪个|哪些|什么|几个)(?:进程|任务|作业|pod|容器|程序|用户)",
        re.IGNORECASE,
    ),
    "throttled": lazy(
        r"(?<![a-z])throttl\w*|clocks? (?:so |too |that )?(?:low|down|held|slow)|(?:low|held|slow) clocks?|power cap\w*|降频|限频|频率(?:这么|很|太)?低|时钟(?:这么|很|太)?低|掉频",
        re.IGNORECASE,
    ),
    "faster": lazy(
        r"(?<![a-z])(?:faster|speed(?: \w+)? up|speed-?up|quicker|more (?:throughput|performance|out of)|what would help|tune|optimi[sz]e\w*|room for)|(?:再|更|跑)?快[点些一]|能(?:再|更)?快|提速|加速|更快|优化|提升|榨",
        re.IGNORECASE,
    ),
    "bottleneck": lazy(
        r"(?<![a-z])(?:bottleneck\w*|what(?:'s| is)? (?:limits?|limiting|holding|slowing)|bound by|limiting factor)(?![a-z])|瓶颈|卡在哪|拖后腿|受限于|什么限制",
        re.IGNORECASE,
    ),
    "wasted": lazy(
        r"(?<![a-z])(?:wast(?:e|ed|ing)|idle|idling|unused|doing nothing|not (?:being )?used)(?![a-z])|摸鱼|空转|浪费|闲着|闲置|空闲",
        re.IGNORECASE,
    ),
    "working": lazy(
        r"(?<![a-z])(?:(?:actually|really|truly|even|properly|well) (?:\w+ )?(?:work\w*|us(?:ed|ing)|busy|doing|utili[sz]ed)|(?:is|are) (?:it|they|this|that|these|those|the|my|our|all)\s?(?:\w+ ){0,3}(?:working|doing (?:any|real|some)\w*|(?:being )?(?:well )?(?:used|utili[sz]ed))|real work|useful work|doing anything|efficient\w*|utili[sz]ation (?:good|ok|fine))(?![a-z])"
        r"|干活|在工作|真在|真的?在|用得(?:好|怎么样)|用起来|效率|用满|利用率(?:怎么样|好不好|行吗|正常吗)",
        re.IGNORECASE,
    ),
}


def asked(query: Query) -> str:
    """Which of these questions a sentence asks, whatever its files are called; empty for any other."""
    text = query.text
    for name in query.slots.file:
        text = text.replace(name, " ")
    return next((kind for kind, said in _KINDS.items() if said.search(text)), "") if len(text) <= _LONG else ""


_LONG = 120  # characters: who tells more than he asks is answered from what he tells


def answer(turn: Turn) -> Reply | None:
    """The answer from the counters that were read; None where none was, a fault goes first, or something else is asked."""
    d, kind = turn.diagnosis, asked(turn.query)
    if (
        d is None
        or not kind
        or only_said(d.facts)
        or turn.query.observations
        or (turn.query.slots.gpu and kind != "who")
        or turn.query.slots.pid
    ):
        return None
    w, classes = words(turn), _classes(d)
    roots = bad_roots(d.findings)
    if kind == "who":
        return _who(turn, w, classes)
    if not classes or any(not _of_work(f) for f in roots):
        return None  # a fault is told first, whatever is asked
    if kind == "throttled":
        return _throttled(turn, w, roots)
    told = [said.in_(w.lang) for c in (*_HELD_UP, *_IDLE, *_GOOD) if c in classes and (said := at_work(d.facts, (c,)))]
    verdict = _FIRST[kind]["slack" if not roots and _has_slack(d) else _side(classes, roots)].in_(w.lang)
    first = _sentence(w, roots[0]) if roots else told[0]
    more = [t for t in told if t != first and not (roots and t == told[0])]
    gap = "" if w.lang == "zh" else " "
    return _reply(turn, f"{verdict}{gap}{first}", _parts(w, d, roots, more), roots)


def idle(turn: Turn) -> Reply | None:
    """Which GPUs do nothing, by their classes: also those with which nothing is wrong. None where none does, or no counter was read."""
    d = turn.diagnosis
    if d is None or asked(turn.query) != "wasted" or only_said(d.facts) or turn.query.slots.pid:
        return None
    wasted = ("busy_idle", *_IDLE)
    read = {gpu: d.facts.current(_CLASS, gpu) for gpu in d.facts.subjects(Scope.GPU)}
    gpus = [gpu for gpu, o in read.items() if o is not None and o.value in wasted]
    roots = bad_roots(d.findings)
    if not gpus or (said := does(d.facts, gpus)) is None or any(not _of_work(f) for f in roots):
        return None
    about = [f for f in roots if f.subject in gpus]
    reply = _reply(turn, said.in_(turn.lang), _parts(words(turn), d, about, ()), about)
    return replace(
        reply, data={**reply.data, "one": gpus[0].id if len(gpus) == 1 else None}
    )  # whose "its" is asked next


def _classes(d: Diagnosis) -> set[str]:
    read = (d.facts.current(_CLASS, gpu) for gpu in d.facts.subjects(Scope.GPU))
    return {str(o.value) for o in read if o is not None and o.status is Status.OK}


def _of_work(f: Finding) -> bool:
    """Whether a finding is about how well GPUs are used, and no fault of theirs."""
    return any(o.fact.startswith(("gpu.work.", "gpu.activity.", "gpu.window.")) for o in f.because)


def _has_slack(d: Diagnosis) -> bool:
    """Whether GPUs that are at work stand still for a good part of the time."""
    for gpu in d.facts.subjects(Scope.GPU):
        kind, busy = d.facts.current(_CLASS, gpu), d.facts.current("gpu.work.busy", gpu)
        if kind is None or busy is None or kind.value != "working" or not isinstance(busy.value, int | float):
            continue
        if busy.value < BUSY:
            return True
    return False


def _side(classes: set[str], roots: Sequence[Finding]) -> str:
    if classes.intersection(_HELD_UP) or roots:
        return "held" if not classes.intersection(_GOOD) else "partly"
    if classes.intersection(_IDLE):
        return "idle" if not classes.intersection(_GOOD) else "partly"
    return "memory" if classes == {"memory_bound"} else "good"


_FIRST = {
    "working": {
        "slack": Text("Only part of the time:", "只有一部分时间在干活："),
        "held": Text("No, not as it should:", "没有好好干活："), "idle": Text("No:", "没有在干活："), "partly": Text("Not all of them:", "不是全部都在干活："),
        "memory": Text("Yes:", "在干活："), "good": Text("Yes:", "在干活："),
    },
    "wasted": {
        "slack": Text("For part of the time:", "有一部分时间闲着："),
        "held": Text("Yes, in part:", "有浪费："), "idle": Text("Yes:", "是："), "partly": Text("Some of it:", "有一部分："),
        "memory": Text("No:", "没有："), "good": Text("No:", "没有："),
    },
    "faster": {
        "slack": Text("Likely, it stands still for part of the time:", "很可能，有一部分时间在空等："),
        "held": Text("Yes:", "能："), "idle": Text("There is nothing to speed up yet:", "还谈不上提速："), "partly": Text("Yes, some of it:", "有一部分可以："),
        "memory": Text("A little:", "能快一些："), "good": Text("Not much by its counters:", "从计数器看余地不大："),
    },
    "bottleneck": {
        "slack": Text("What feeds it (host, input), as it stands still for part of the time:", "多半是主机或输入，GPU 有一部分时间在空等："),
        "held": Text("By its counters:", "从计数器看："), "idle": Text("None, nothing runs:", "没有瓶颈，没有任务在跑："), "partly": Text("By their counters:", "从计数器看："),
        "memory": Text("Memory bandwidth:", "显存带宽："), "good": Text("None stands out:", "没有明显瓶颈："),
    },
}  # fmt: skip


def _sentence(w: Words, f: Finding) -> str:
    same = [x for x in w.d.findings if x.rule.id == f.rule.id]
    return f"{w.rule_title(titled(same), [x.subject for x in same])}{w.t('.', '。')}"


def _parts(w: Words, d: Diagnosis, roots: Sequence[Finding], more: Sequence[str]) -> list[Part]:
    """What the other GPUs do, what would change it, and who holds them."""
    held = _holders(d)
    steps = [f.advice.text.in_(w.lang) for f in roots[:2] if f.advice.text]
    steps += [
        f.advice.text.in_(w.lang)
        for f in d.roots
        if f.severity is Severity.INFO and _of_work(f) and f.advice.text and not roots
    ]
    return [
        *([Items(tuple(more))] if more else []),
        *w.section("What changes it", "如何改善", list(dict.fromkeys(steps))),
        *w.section("Held by", "占用者", held),
    ]


def _throttled(turn: Turn, w: Words, roots: Sequence[Finding]) -> Reply | None:
    """Whether clocks that are held down are a trouble: as the findings have it, and never more than `check` says."""
    d = turn.diagnosis
    assert d is not None
    held = [f for f in d.roots if _of_clocks(f)]
    if not held:
        if roots:
            return None
        if not any(name.startswith(_THROTTLES) for name in d.facts.facts):
            said = w.t(
                "What was read does not tell whether clocks are held down: nvidia-smi -q -d PERFORMANCE,CLOCK does.",
                "所读内容不含降频信息：请用 nvidia-smi -q -d PERFORMANCE,CLOCK 查看。",
            )
        else:
            said = w.t("What was read names no reason that lowers the clocks.", "所读内容中没有压低时钟的原因。")
        return _reply(turn, said, [], ())
    if (lowered := _lowered(d)) is not None:
        return _reply(turn, f"{lowered.in_(w.lang)}{'' if w.lang == 'zh' else ' '}{_sentence(w, held[0])}", [], held)
    f = held[0]
    lead = w.t("No, nothing is broken:", "不是故障：") if f.severity is Severity.INFO else w.t("Yes:", "有问题：")
    gap = "" if w.lang == "zh" else " "
    steps = [x.advice.text.in_(w.lang) for x in held if x.advice.text]
    return _reply(turn, f"{lead}{gap}{_sentence(w, f)}", w.section("Next", "下一步", list(dict.fromkeys(steps))), held)


_THROTTLES = ("gpu.clock.event", "gpu.violation.")


def _lowered(d: Diagnosis) -> Text | None:
    """That somebody set a power limit below what the board comes with; None where nobody did, or it is not told."""
    for gpu in d.facts.subjects(Scope.GPU):
        limit, usual = (d.facts.current(n, gpu) for n in ("gpu.power.limit", "gpu.power.limit.default"))
        watts = [o.value for o in (limit, usual) if o is not None and isinstance(o.value, int | float)]
        if len(watts) == 2 and watts[0] < watts[1]:
            return Text(
                f"Its power limit was lowered to {watts[0]:g} W, the board's default is {watts[1]:g} W (nvidia-smi -pl {watts[1]:g} undoes it, where that is not meant):",
                f"功率上限被调低到 {watts[0]:g} W，板卡默认为 {watts[1]:g} W（若非有意，可用 nvidia-smi -pl {watts[1]:g} 恢复）：",
            )
    return None


def _of_clocks(f: Finding) -> bool:
    return any(
        o.fact.startswith(
            ("gpu.clock.", "gpu.violation.", "gpu.power.limit", "gpu.window.thermal", "gpu.window.power_")
        )
        for o in f.because
    )


def _who(turn: Turn, w: Words, classes: set[str]) -> Reply | None:
    """Those that hold the GPUs, as the files name them; where they name none, how to find out."""
    d = turn.diagnosis
    assert d is not None
    where = scoped(d, turn.query.slots)
    if where.unknown:
        return None
    held, gap = _holders(d, where.subjects), "" if w.lang == "zh" else " "
    if where.subjects:
        return _of_gpu(turn, w, where.subjects, held)
    told = [said.in_(w.lang) for c in (*_IDLE, *_HELD_UP, *_GOOD) if c in classes and (said := at_work(d.facts, (c,)))]
    if not held and not told:
        return None
    if not held:
        head = w.t(f"What was read names no process and no pod. {told[0]}", f"所读内容没有给出进程或 pod。{told[0]}")
        return _reply(turn, head, w.section("To find out", "查找方法", [_FIND.in_(w.lang)]), ())
    several = len(held) > 1
    lead = w.t(
        f"{len(held)} programs or pods share the GPUs that were read:", f"所读 GPU 上共有 {len(held)} 个程序或 pod："
    )
    names = listed(held[:_HOLDERS], w.lang)
    head = (
        f"{lead}{gap}{names}{w.t('.', '。')}"
        if several
        else w.t(f"{names} holds GPU memory, nothing else does.", f"占用显存的只有 {names}。")
    )
    ask = w.t(
        "Ask the owner before anything is ended: what is only in memory is lost.",
        "结束之前先问归属人：内存中未保存的内容会丢失。",
    )
    ends = [ask] if _ENDS.search(turn.query.text) else []
    return _reply(turn, head, [*([Items((*told, *ends))] if told or ends else [])], ())


def _of_gpu(turn: Turn, w: Words, gpus: Sequence[Subject], held: Sequence[str]) -> Reply | None:
    """Who is on the GPU that is named, and nobody else."""
    if not held:
        return None
    place, names = w.view.where(gpus), listed(held[:_HOLDERS], w.lang)
    return _reply(turn, w.t(f"{place}: {names}.", f"{place}：{names}。"), [], ())


_ENDS = lazy(r"(?<![a-z])(?:kill|stop|end|cancel|evict)|杀|停|结束|踢", re.IGNORECASE)
_FIND = Text(
    "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv on the node; squeue -w NODE or the pod labels of dcgm-exporter name the job.",
    "在节点上运行 nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv；用 squeue -w NODE 或 dcgm-exporter 的 pod 标签查作业。",
)


def _holders(d: Diagnosis, gpus: Sequence[Subject] = ()) -> list[str]:
    """Pods and processes that use a GPU, those that are named or any, by the names that the files give them."""

    def there(user: Subject) -> bool:
        return not gpus or any(user in d.facts.related(gpu, user.scope) for gpu in gpus)

    facts, out = d.facts, dict[str, None]()
    for pod in facts.subjects(Scope.POD):
        if facts.current("pod.uses_gpu", pod) is not None and there(pod):
            out[f"pod {pod.id}"] = None
    for process in filter(there, facts.subjects(Scope.PROCESS)):
        names = (facts.current(name, process) for name in ("process.name", "process.comm", "process.command"))
        name = next((str(o.value) for o in names if o is not None and o.status is Status.OK and o.value), "")
        out[f"{name} (pid {process.id})" if name else f"pid {process.id}"] = None
    return list(out)


def _reply(turn: Turn, head: str, parts: Sequence[Part], about: Sequence[Finding]) -> Reply:
    d = turn.diagnosis
    assert d is not None
    # The state and its exit are those of `check`; the first line answers what was asked.
    verdict = replace(d.verdict, text=Text(head if turn.lang != "zh" else "", head))
    return Reply(
        turn.lang, head, tuple(parts), replace(d, verdict=verdict), focus=about[0].id if about else "", settled=d.settled,
        suggestions=suggest(turn.lang, "why", "next") if about else suggest(turn.lang, "evidence"),
        data={"answer": "work", "asked": asked(turn.query), "findings": [f.rule.id for f in about]},
    )  # fmt: skip
