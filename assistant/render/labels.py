"""The words around an answer, in both languages. What an answer says comes from the data files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from assistant.render.trace_units import duration, share
from assistant.render.words import our_words
from knowledge.identity import UNKNOWN_PCI
from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.observation import AT_LEAST, Observation, Origin, Scope, Status, Subject
from knowledge.text import clean

if TYPE_CHECKING:
    from knowledge.facts import FactSpec
    from rules.engine import Finding, Impact
    from rules.factbase import FactBase

UNSAID = "unknown:?"  # the id of a thing of which somebody said no more than its kind

_LABELS: dict[str, Text] = {
    # verdict
    "ok": Text("OK", "正常"),
    "degraded": Text("DEGRADED", "降级"),
    "unhealthy": Text("UNHEALTHY", "异常"),
    "unknown": Text("UNKNOWN", "未知"),
    # severities
    "info": Text("INFO", "信息"),
    "warning": Text("WARNING", "警告"),
    "error": Text("ERROR", "错误"),
    "critical": Text("CRITICAL", "严重"),
    # grades
    "confirmed": Text("confirmed", "已确认"),
    "probable": Text("probable", "很可能"),
    "possible": Text("possible", "有可能"),
    "ruled_out": Text("ruled out", "已排除"),
    # risks
    "safe": Text("safe", "安全"),
    "disruptive": Text("disruptive: stops or blocks the work there", "有影响：会中断或阻止该处的任务"),
    "command_reads": Text("the command only reads; what follows it is {risk}", "该命令只读取；后续操作{risk}"),
    "bundle_empty": Text("nothing that a probe can read was recorded in it", "其中没有任何探针可读的记录"),
    "not_recorded": Text("nothing was recorded for: {names}", "没有以下来源的记录：{names}"),
    "newer_probes": Text(
        "was recorded with probes that this version does not have: {names}", "记录时使用了本版本没有的探针：{names}"
    ),
    "newer_facts": Text(
        "holds samples of earlier checks of facts that this version does not know: {names}",
        "其中早前检查的样本含有本版本不认识的事实：{names}",
    ),
    "newer_entries": Text("{n} entries of kinds that this version does not know", "{n} 个条目的类型是此版本不认识的"),
    "destructive": Text("destructive: hardware is touched", "高风险：涉及硬件操作"),
    # sections
    "do_next": Text("Do next", "下一步"),
    "found": Text("Found", "发现"),
    "ruled_out_title": Text("Ruled out", "已排除"),
    "undecided": Text("Undecided", "尚未确定"),
    "could_not_see": Text("Could not see", "无法查看"),
    "notes": Text("Notes", "备注"),
    "then": Text("then: ", "然后："),
    "explains": Text("explains: ", "解释了："),
    "impact": Text("explains {share} % of {of}", "占{of}的 {share} %"),
    "impact_most": Text("explains up to {share} % of {of}", "最多占{of}的 {share} %"),
    "impact_hours": Text(", {n} hours of it a day", "，每天 {n} 小时"),
    "impact_hours_most": Text(", {n} GPU-hours a day in all", "，合计每天 {n} GPU 小时"),
    "may_explain": Text("may explain: ", "可能解释："),
    "for": Text("for: ", "针对："),
    "would_confirm": Text("would settle it: ", "可据此确认："),
    "needs": Text("needs {}", "需要 {}"),
    "would_show": Text("{command} shows: {what}", "运行 {command} 可看到：{what}"),
    "recorded_with": Text("a trace recorded with {option}", "用 {option} 采集的轨迹"),
    "runbook": Text("runbook: ", "处置手册："),
    "why": Text("why: ", "原因："),
    "false_positives": Text("mistaken for it: ", "容易误判："),
    "said_by": Text("action from: ", "动作依据："),
    "times": Text("{n} times, last {last}", "共 {n} 次，最后一次 {last}"),
    "process_in": Text("{process} in {where}", "{process}，位于 {where}"),
    "rule": Text("rule: ", "规则："),
    "references": Text("sources: ", "参考："),
    "nothing_to_do": Text("Nothing.", "无需操作。"),
    "same_command": Text("and the same for {others}", "以下对象同样处理：{others}"),
    "more_lines": Text("{n} more", "另有 {n} 条"),
    "more_undecided": Text("{n} more with --verbose", "另有 {n} 项，使用 --verbose 查看"),
    "more_steps": Text("{n} more: {names} (--verbose)", "另有 {n} 项：{names}（--verbose）"),
    "on_gpus": Text("{n} GPUs", "{n} 个 GPU"),
    "at_least": Text("at least ", "至少 "),
    "on_places": Text("{n} places", "{n} 处"),
    "from": Text("from", "来源"),
    "against": Text("but here: {text}", "但此处：{text}"),
    "known_issue": Text("may be a known issue: ", "可能是已知问题："),
    "ruleset": Text("rules {hash}", "规则集 {hash}"),
    "read": Text("{answered} of {asked} facts answered", "{asked} 项事实中有 {answered} 项得到答案"),
    "evidence": Text("Evidence", "证据"),
    "action": Text("Action", "动作"),
    "symptoms": Text("Symptoms", "症状"),
    "title": Text("GPU diagnosis", "GPU 诊断"),
    "told": Text("as told", "人工提供"),
    "derived": Text("computed", "推导得出"),
    "also": Text("also ", "另有 "),
    "copies": Text("x{n}", "×{n}"),
    "event_list": Text("Events", "事件"),
    "why_actions": Text("Why", "原因"),
    # sources of an action
    "recovery154": Text("the driver's own recovery action (XID 154)", "驱动给出的恢复动作（XID 154）"),
    "decoded": Text("the decoded sub-code", "解码后的子码"),
    "workflow": Text("NVIDIA's workflow for this XID", "NVIDIA 针对该 XID 的处理流程"),
    "catalogue": Text("NVIDIA's catalogue", "NVIDIA 错误目录"),
    "kept": Text("NVIDIA's catalogue", "NVIDIA 错误目录"),
    "cuda": Text("what CUDA's error code says", "CUDA 错误码所述"),
    "dcgm": Text("what DCGM's message says", "DCGM 消息所述"),
    "unlisted": Text("gpudiag, NVIDIA lists none", "gpudiag（NVIDIA 未列出）"),
    "rule_speaks": Text("the rule", "该规则"),
    "cure": Text("what has cured it since", "此后已采取的恢复动作"),
    "again": Text("it came back after what should have cured it", "恢复动作之后再次发生"),
    # reasons
    "none_seen": Text("none seen", "未见"),
    "not_applicable": Text("not applicable", "不适用"),
    "unsupported": Text("not reported by this device or driver", "此设备或驱动不提供"),
    "denied": Text("permission denied", "权限不足"),
    "timeout": Text("no answer in time", "超时未应答"),
    "failed": Text("failed", "读取失败"),
    "stale": Text("too old", "数据过旧"),
    "not_asked": Text("not among the inputs", "输入中没有"),
}  # fmt: skip

_SCOPES: dict[Scope, Text] = {
    Scope.CLUSTER: Text("cluster", "集群"), Scope.RACK: Text("rack", "机架"), Scope.SWITCH: Text("switch", "交换机"),
    Scope.NODE: Text("node", "节点"), Scope.GPU: Text("GPU", "GPU"), Scope.MIG: Text("MIG instance", "MIG 实例"),
    Scope.NVSWITCH: Text("NVSwitch", "NVSwitch"), Scope.NIC: Text("NIC", "网卡"), Scope.PORT: Text("port", "端口"),
    Scope.LINK: Text("link", "链路"), Scope.PCI: Text("PCI device", "PCI 设备"), Scope.PROCESS: Text("process", "进程"),
    Scope.CONTAINER: Text("container", "容器"), Scope.POD: Text("pod", "Pod"), Scope.JOB: Text("job", "作业"),
    Scope.RANK: Text("rank", "rank"), Scope.COLLECTIVE: Text("collective", "集合通信"),
    Scope.OPERATOR: Text("operator", "算子"), Scope.KERNEL: Text("kernel", "内核函数"),
    Scope.ITERATION: Text("iteration", "迭代"), Scope.DOCUMENT: Text("document", "文档"),
    Scope.OBJECT: Text("object", "对象"), Scope.TEAM: Text("team", "团队"),
}  # fmt: skip


def label(key: str, lang: str) -> str:
    """The word for `key`."""
    return _LABELS[key].in_(lang)


def grade_word(f: Finding, lang: str) -> str:
    """How sure a finding is; of one that stands on a person's word alone, that it does."""
    return label("told" if f.told and f.grade in ("confirmed", "probable") else str(f.grade), lang)


def impact_words(impact: Impact | None, lang: str, most: bool = False) -> str:
    """``explains 58.0 % of the traced window (540 ms)``; empty without an impact. `most`: of several the greatest."""
    if impact is None:
        return ""
    said = label("impact_most" if most else "impact", lang).format(
        share=share(impact.share).removesuffix(" %"), of=clean(impact.of.in_(lang))
    )
    said += "" if impact.seconds is None else aside(duration(impact.seconds * 1e9), lang)
    return (
        said
        if impact.hours is None
        else f"{said}{label('impact_hours_most' if most else 'impact_hours', lang).format(n=f'{impact.hours:.3g}')}"
    )


def scope_name(scope: Scope, lang: str) -> str:
    """What a kind of subject is called."""
    return _SCOPES[scope].in_(lang)


# GPU -> the driver's number; process -> its rank, or what it runs; the node that no input names -> the one file it comes from, or ""
Called: TypeAlias = Mapping[Subject, int | str]


def subject_name(subject: Subject, lang: str, called: Called | None = None) -> str:
    """A subject as people call it: ``GPU 0000:3b:00.0``, ``this node``; where `called` has it ``GPU 5 (0000:3b:00.0)``,
    ``rank 1 (pid 4243)``, ``process 4242 (train.py)``, ``the node of ibstat.txt``."""
    if called and (known := called.get(subject)) is not None:
        if subject.scope is Scope.NODE:
            return {"zh": f"{known} 的节点" if known else "所给文件的节点"}.get(
                lang, f"the node of {known or 'these files'}"
            )
        if subject.scope is not Scope.PROCESS:
            return f"{scope_name(subject.scope, lang)} {known}{aside(subject.id, lang)}"
        if isinstance(known, int):
            return f"{scope_name(Scope.RANK, lang)} {known}{aside(f'pid {subject.id}', lang)}"
        return f"{scope_name(subject.scope, lang)} {subject.id}{aside(known, lang)}"
    word = scope_name(subject.scope, lang)
    gap = " " if word[:1].isascii() else ""
    if subject.scope is Scope.NODE and not subject.id:
        return {"zh": "本节点"}.get(lang, "this node")
    if subject.scope is Scope.LINK and subject.parent is not None and subject.id == UNSAID:
        whose = subject_name(subject.parent, lang, called)
        return {"zh": f"{whose} 的某条{word}"}.get(lang, f"one {word} of {whose}")
    if subject.scope is Scope.LINK and subject.parent is not None:
        return f"{subject_name(subject.parent, lang, called)} {word} {subject.id}"
    if (
        subject.scope is Scope.MIG and subject.parent is not None and subject.id != UNSAID
    ):  # each GPU counts its own from 0
        number = (called or {}).get(subject.parent)
        whose = subject_name(subject.parent, lang) if number is None else f"GPU {number}"
        return {"zh": f"{whose} 的 {word} {subject.id}"}.get(lang, f"{word} {subject.id} of {whose}")
    if subject.id == UNSAID and subject.scope in (Scope.NODE, Scope.JOB):
        return {"zh": f"所述{'节点' if subject.scope is Scope.NODE else '作业'}"}.get(lang, f"the {word} described")
    if subject.scope is Scope.OBJECT and subject.id == f"{UNKNOWN_PCI}drive":
        return {"zh": "某块硬盘（文本未说明是哪块）"}.get(lang, "a drive (the text does not say which)")
    if subject.id.startswith(UNSAID) and subject.scope is Scope.OBJECT:
        word, gap = ("部件", "") if lang == "zh" else ("part", " ")
    elif (
        subject.scope in (Scope.DOCUMENT, Scope.OBJECT) and subject.id
    ):  # a file, a mount, a service: known by its name
        return subject.id
    if subject.scope is Scope.RANK and not subject.id.isdigit() and subject.id != UNSAID:  # a trace that names no rank
        return {"zh": f"轨迹 {subject.id}"}.get(lang, f"trace {subject.id}")
    if subject.id.startswith(f"{UNSAID}x"):  # so many of what somebody said
        many = subject.id.removeprefix(f"{UNSAID}x")
        return {"zh": f"{many} 个{gap}{word}"}.get(lang, f"{many} {word}s")
    if subject.id.startswith(UNSAID) and " of " in subject.id:
        one, _, many = subject.id.removeprefix(UNSAID).partition(" of ")
        return {"zh": f"所列 {many} 个{gap}{word} 中的第 {one} 个"}.get(lang, f"{word} {one} of the {many} listed")
    if subject.scope is Scope.COLLECTIVE and subject.id == "collective":
        return {"zh": "某个集合通信（文本未说明是哪个）"}.get(lang, "a collective (the text does not say which)")
    if subject.id == UNSAID:  # of what somebody said
        return {"zh": f"某个{gap}{word}"}.get(lang, f"one {word}")
    if subject.id.startswith("unknown:others"):
        return {"zh": f"其他 {word}"}.get(lang, f"the other {word}s")
    if subject.scope is Scope.GPU and subject.id == f"{UNKNOWN_PCI}unnamed":
        return {"zh": "某个 GPU（日志未说明是哪个）"}.get(lang, "a GPU (the log does not say which)")
    if subject.scope is Scope.GPU and subject.id == f"{UNKNOWN_PCI}row 0":
        return {"zh": "某个 GPU（文本未说明是哪个）"}.get(lang, "a GPU (the text does not say which)")
    if subject.scope is Scope.GPU and subject.id.startswith(f"{UNKNOWN_PCI}row "):
        number = int(subject.id.rpartition(" ")[2]) + 1
        return {"zh": f"文本中的第 {number} 个 GPU（未命名）"}.get(
            lang, f"GPU no. {number} of the text (it does not say which)"
        )
    if subject.scope is Scope.GPU and subject.id.startswith("unknown:"):
        return {"zh": "某个 GPU（地址未知）"}.get(lang, f"GPU at an unreadable address ({subject.id[8:]})")
    if subject.scope is Scope.GPU and subject.id.startswith("instance:"):
        instance = subject.id.removeprefix("instance:")
        return {"zh": f"GPU（驱动编号 {instance}，地址未知）"}.get(
            lang, f"GPU that the driver calls GPU{instance} (address unknown)"
        )
    if subject.scope is Scope.GPU and subject.id.startswith("GPU-"):  # a UUID says the word itself
        return subject.id
    return f"{word} {subject.id.removeprefix('index:')}"


_BETWEEN_HAN = lazy("(?<=[\u4e00-\u9fff\uff09]) (?=[\u4e00-\u9fff])")  # a Chinese word filled into a Chinese sentence
_SAID = frozenset(Scope) - {Scope.DOCUMENT, Scope.OBJECT}  # of which the name begins with a word of ours


def tight(text: str, lang: str) -> str:
    """`text` without the blanks between Han characters that come from what was filled in."""
    return _BETWEEN_HAN.sub("", text) if lang == "zh" else text


def localised(text: str, subject: Subject | None, lang: str, called: Called | None = None) -> str:
    """`text` with the plain names of `subject` and of what it is part of put into `lang`; the node that nobody names as `called` has it."""
    here = subject
    while here is not None:
        text = text.replace(str(here), subject_name(here, lang, called if here.scope is Scope.NODE else None))
        here = here.parent
    return text


# "The GPU has not joined the fabric", of one GPU: its name stands for the words that begin the title.
_OPENINGS: dict[Scope, str] = {
    Scope.GPU: "GPU", Scope.NODE: "node", Scope.PROCESS: "process", Scope.JOB: "job", Scope.CONTAINER: "container",
    Scope.PORT: "(?:RDMA |InfiniBand )?port", Scope.NIC: "network (?:interface|adapter)", Scope.LINK: "NVLink",
    Scope.MIG: "MIG instance", Scope.PCI: "device", Scope.RANK: "(?:trace|rank)",
}  # fmt: skip
_VERBS = "has|is|was|had|does|did|could|cannot|may|runs|reports|waits|receives|drops|counts|ended|lowers|computes|copies|keeps|holds|lost"


def gpu_numbers(facts: FactBase) -> dict[Subject, int]:
    """The driver's number of each GPU that has one; none where two of a node claim the same."""
    found = {
        s: o.value
        for s in facts.subjects(Scope.GPU)
        if (o := facts.current("gpu.index", s)) is not None
        and isinstance(o.value, int)
        and not s.id.startswith("index:")
    }
    claims = Counter((s.host, n) for s, n in found.items())
    return {s: n for s, n in found.items() if claims[s.host, n] == 1}


def known_as(facts: FactBase) -> dict[Subject, int | str]:
    """What people call GPUs and processes: the driver's number, the rank of a job, the script that runs; and a node without a name."""
    out: dict[Subject, int | str] = {**gpu_numbers(facts), **_of_files(facts)}
    for s in facts.subjects(Scope.PROCESS):
        for fact in ("process.script", "process.rank"):  # a rank says more
            o = facts.current(fact, s)
            if o is not None and o.status is Status.OK and isinstance(o.value, int | str):
                out[s] = o.value
    return out


def _of_files(facts: FactBase) -> dict[Subject, int | str]:
    """The node that no input names, by its file: what was captured is not the machine on which somebody reads it."""
    unnamed = Subject(Scope.NODE, "")
    if unnamed not in facts.subjects(Scope.NODE):
        return {}
    told = (k.inner for k in facts.observations if k.inner.subject.up(Scope.NODE) == unnamed)
    files = {o.source.call for o in told if o.origin is Origin.MEASURED and o.source.call}
    if not files or "the message" in files:
        return {}
    return {unnamed: clean(min(files).rpartition("/")[2]) if len(files) == 1 else ""}


def headline(
    title: Text, subjects: Sequence[Subject], lang: str, *, named: bool = False,
    called: Called | None = None, least: bool = False,
) -> str:  # fmt: skip
    """A finding in one clause: ``GPU 5 (0000:3b:00.0) has fallen off the bus``, ``Node n1: Compute rails are down``.

    `named` puts the node's name ahead: where there are several. `called`: see `known_as`; `least`: see `at_least`.
    """
    about = list(dict.fromkeys(subjects))
    where = clean(subject_name(about[0], lang, called) if len(about) == 1 else _those(about, lang, called))
    least = least and len(about) > 1
    where = f"{label('at_least', lang)}{where}" if least else where
    hosts = {s.host for s in about}
    if named and len(hosts) == 1 and about[0].scope is not Scope.NODE and (host := clean(min(hosts))):
        where = f"{host} {where}"
    elif lang != "zh" and (least or about[0].scope in _SAID or about[0].id.startswith(UNKNOWN_PCI)):
        where = where[:1].upper() + where[1:]
    if lang != "zh":
        opening = _OPENINGS.get(about[0].scope, "") if len(about) == 1 else ""
        found = opening and re.match(rf"(?:An? |The |This |One )?{opening} (?=(?:{_VERBS})\b)", title.en)
        if found:
            return f"{where} {title.en[found.end() :]}"
        return f"{where}: {title.en}"
    said = title.zh or title.en
    if len(about) == 1 and about[0].scope is Scope.GPU:  # GPU 0000:ba:00.0：从总线上掉线
        rest = said.removeprefix("GPU ")
        said = rest if "\u4e00" <= rest[:1] <= "\u9fff" and rest[0] not in "的或与到中" else said
    return f"{where}：{said}"


def at_least(findings: Iterable[Finding]) -> bool:
    """Whether more things than these have it: a log was about more of them than one answer tells apart."""
    return any(o.detail.startswith(AT_LEAST) for f in findings for o in f.events)


def titled(findings: Sequence[Finding], program: bool = False) -> Text:
    """The title of one rule's findings with the figures ahead of it that its file `leads` with; of one, if wanted, its program."""
    from assistant.render.which import which
    from rules.engine import lead, program_of

    named = program and all(f.program for f in findings)
    of = program_of(o for f in findings for o in f.events) if named else None
    title, ahead = findings[0].titled(which(findings), of), lead(findings)
    if not ahead:
        return title
    said = re.sub("^GPU (?:is )?", "", title.en)  # whose figures they are stands ahead of them
    named = said[1:2].isupper() or said[1:2].isdigit()  # ECC, L2
    said = said if named else said[:1].lower() + said[1:]
    return Text(f"{ahead.en}: {said}", f"{ahead.in_('zh')}：{title.in_('zh')}")


def many(subjects: Sequence[Subject], lang: str) -> str:
    """How many, of what: ``3 GPUs``, ``2 processes``."""
    scopes, n = {s.scope for s in subjects}, len(subjects)
    if len(scopes) != 1 or not scopes <= _SAID:
        return label("on_places", lang).format(n=n)
    word = scope_name(next(iter(scopes)), lang)
    if lang == "zh":
        return f"{n} 个{' ' if word[:1].isascii() else ''}{word}"
    return f"{n} {word}{'es' if word.endswith(('s', 'ch')) else 's'}"


_FEW = 3  # nodes and parts of which a headline gives the names
_GPUS = 8  # GPUs, or runs of them: a node has so many


# What has a name of its own that people know it by.
_NAMED = frozenset({Scope.NODE, Scope.OBJECT, Scope.PORT, Scope.NIC, Scope.PCI})
_NAMES = 100  # characters of all names


def _those(about: Sequence[Subject], lang: str, called: Called | None = None) -> str:
    """``2 nodes (gpu-117, gpu-119)``, ``12 places (FAN1, FAN2, FAN3, ...)``, ``4 GPUs (4-7)``: what has a short name of its own
    is named."""
    count = many(about, lang)
    if {s.scope for s in about} == {Scope.GPU} and len({s.host for s in about}) == 1:
        names = _gpus(about, called or {})
    elif {s.scope for s in about} - _NAMED or not all(s.id and not s.id.startswith(UNSAID) for s in about):
        return count
    else:
        shown = [
            s.id for n, s in enumerate(about[:_FEW]) if n == 0 or sum(len(t.id) + 2 for t in about[: n + 1]) <= _NAMES
        ]
        names = shown + (["..."] if len(about) > len(shown) else [])
    return count + aside(listed(names, lang), lang) if names else count


def _gpus(about: Sequence[Subject], called: Called) -> list[str]:
    """``["0", "4-7"]`` by the driver's numbers; addresses of a few, where one has no number."""
    ids = [str(called.get(s, s.id.removeprefix("index:"))) for s in about]
    if not all(i.isdigit() for i in ids):
        few = len(ids) <= _FEW and not any(i.startswith(("unknown:", "instance:")) for i in ids)
        return [clean(s.id) for s in sorted(about, key=lambda s: (len(s.id), s.id))] if few else []
    runs: list[list[int]] = []
    for n in sorted(map(int, ids)):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    names = [str(r[0]) if len(r) == 1 else f"{r[0]}{'-' if len(r) > 2 else ', '}{r[-1]}" for r in runs]
    return names if len(names) <= _GPUS else []


def colon(lang: str) -> str:
    """What stands between a name and what is said of it."""
    return {"zh": "："}.get(lang, ": ")


def led(lead: str, said: str, lang: str) -> str:
    """`said` behind the words that lead to it. A clause that holds a colon of its own begins a sentence instead of a second one."""
    if lang == "zh":
        return f"{lead}：{said}"
    return f"{lead}{'.' if ': ' in said else ':'} {said}"


def listed(items: Iterable[str], lang: str, mark: str = ",") -> str:
    """Items one after another; `mark` is ``,`` or ``;``."""
    between = {"zh": {",": "、", ";": "；"}[mark]}.get(lang, f"{mark} ")
    return between.join(items)


def aside(text: str, lang: str) -> str:
    """`text` in brackets, behind a word."""
    return f"（{text}）" if lang == "zh" else f" ({text})"


def sentence(spec: FactSpec, observation: Observation, lang: str, called: Called | None = None) -> str:
    """What an observation says, with its subject by its name in `lang`."""
    said = localised(spec.sentence(observation, lang), observation.subject, lang, called)
    return tight(said, lang)


def reason_name(reason: str, lang: str) -> str:
    """Why a value is missing: a status word (perhaps with detail after a colon), or a sentence."""
    head, mark, detail = reason.partition(": ")
    if head not in list(Status) or head == Status.OK:
        return our_words(reason, lang)
    return label(head, lang) + (aside(our_words(detail, lang), lang) if mark else "")
