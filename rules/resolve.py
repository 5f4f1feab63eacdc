"""From a finding to an action: a closed list of named pure functions, asked in the rule's order.

The first one that has an answer speaks; the finding records which one it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from knowledge.catalog.dcgm import run_of
from knowledge.identity import TOOL_NUMBERS, is_pci
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Status, Subject
from knowledge.record import dataclass
from rules.factbase import FactBase
from rules.model import ActionSpec, Bucket, Cure, Risk, Rule, Severity, Usable

BURST = 180 * 10**9  # ns of silence that ends a burst (NVIDIA Fleet Intelligence, "XID Bursts")
STICKY = 3 * 3600 * 10**9  # ns for which a fault of the GPU itself stands (NVSentinel, sticky XIDs)
# Codes that NVIDIA answers with IGNORE or a restart of the application: nothing of them stays on the GPU.
OVER_SOON = frozenset({8, 13, 14, 31, 32, 37, 38, 43, 44, 45, 63, 66, 68, 69, 92, 94, 121, 137, 160})
HALF = (
    50.0  # percent of its speed: a GPU at its power limit keeps more, and NVIDIA's hardware slowdown takes this or more
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A resolver's word."""

    bucket: Bucket
    because: tuple[Observation, ...] = ()
    then: tuple[Text, ...] = ()
    text: Text = NO_TEXT  # instead of the bucket's own
    command: str = ""
    usable: Usable | None = None
    until: Text = NO_TEXT
    risk: Risk | None = None
    runbook: str = ""  # instead of the rule's


# The driver's numbers of XID 154 (open kernel modules, NV2080_CTRL_GPU_RECOVERY_ACTION); words where the bucket's say something else.
RECOVERY: Mapping[str, Answer] = {
    "gpu_reset": Answer(Bucket.RESET_GPU),
    "node_reboot": Answer(Bucket.RESTART_BM),
    "drain_p2p": Answer(
        Bucket.ASK_PLATFORM,
        text=Text(
            "Stop the programs that use this GPU together with others (NVLink, peer to peer) and read the recovery action again; reset the GPU only when it stays.",
            "停止与其他 GPU 协同使用该 GPU 的程序（NVLink、点对点），再读一次恢复动作；仍存在时才复位 GPU。",
        ),
        command="nvidia-smi -q -i {gpu_pci}",
        usable=Usable.NOT_YET,
        until=Text(
            "its peer-to-peer work has ended and the driver asks for nothing more",
            "其点对点作业已结束且驱动不再要求恢复动作",
        ),
        risk=Risk.DISRUPTIVE,
    ),
    "drain_and_reset": Answer(Bucket.DRAIN_AND_RESET),
    "recover_imex": Answer(
        Bucket.ASK_PLATFORM,
        text=Text(
            "Restart the IMEX service on all nodes of the NVLink domain, then see that each is connected to each (`nvidia-imex-ctl -N`). The GPU itself needs no reset.",
            "在该 NVLink 域的所有节点上重启 IMEX 服务，再确认各节点两两连通（`nvidia-imex-ctl -N`）。GPU 本身无需复位。",
        ),
        command="systemctl restart nvidia-imex",
        usable=Usable.NOT_YET,
        until=Text("the IMEX domain is up again", "IMEX 域恢复"),
        risk=Risk.DISRUPTIVE,
        runbook="fabric-manager",
    ),
    "bus_reset": Answer(
        Bucket.RESTART_BM,
        text=Text(
            "The driver asks for a reset of the GPU's PCIe bus: drain and reboot the node, unless the platform can reset the slot.",
            "驱动要求复位 GPU 的 PCIe 总线：除非平台支持复位插槽，否则排空并重启节点。",
        ),
    ),
    "system_reboot": Answer(Bucket.RESTART_BM),
}


_PLACEHOLDER = lazy(r"\{([a-z_]+)\}")
_UNFILLED = lazy(r"(?<![{$])\{[a-z][a-z_]*\}(?!\})")  # ${HOME} and {{.Name}} belong to a shell or a template


@dataclass(frozen=True, slots=True)
class BucketInfo:
    """What one action word means: text, command, risk."""

    bucket: Bucket
    text: Text
    until: Text
    command: str
    risk: Risk
    usable: Usable
    strength: int
    runbook: str
    cured_by: tuple[Cure, ...] | None  # None: the word does not tell
    of_program: bool  # it mends a program, and nothing of the machine


@cache
def buckets() -> Mapping[Bucket, BucketInfo]:
    """All action words with their meaning."""
    from knowledge.compiled import shard

    return {
        Bucket(d["name"]): BucketInfo(
            Bucket(d["name"]), Text.of(d["text"]), Text.of(d.get("until")), d.get("command", ""),
            Risk(d["risk"]), Usable(d["usable"]), d["strength"], d.get("runbook", ""),
            None if d.get("cured_by") is None else tuple(Cure(c) for c in d["cured_by"]),
            d.get("mends") == "program",
        )
        for d in shard("buckets")
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about one finding."""

    bucket: Bucket
    resolver: str  # which function spoke, or "rule"
    text: Text
    command: str
    risk: Risk
    usable: Usable
    until: Text
    runbook: str
    then: tuple[Text, ...] = ()
    because: tuple[Observation, ...] = ()

    @property
    def pasteable(self) -> bool:
        """Whether the command can be run as it stands: there is one, and nothing in it waits to be filled in."""
        return bool(self.command) and not _UNFILLED.search(self.command)


@dataclass(frozen=True, slots=True)
class Case:
    """What a resolver may look at."""

    rule: Rule
    subject: Subject
    events: Sequence[Observation]
    facts: FactBase


def advise(case: Case) -> Advice:
    """The action of a finding. A rule without a bucket falls back to MONITOR."""
    spec = case.rule.action
    answer, speaker = None, "rule"
    for name in spec.resolve:
        answer = RESOLVERS[name](case)
        if answer is not None:
            speaker = name
            break
    if answer is None:
        answer = Answer(spec.bucket or Bucket.MONITOR)
    advice = _dress(case, answer, speaker)
    return replace(advice, usable=max(advice.usable, Usable.IMPAIRED, key=lambda u: u.rank)) if _slow(case) else advice


def _slow(case: Case) -> bool:
    """Whether half of the speed or more is lost, by the fact that the rule says it `impairs`: whatever holds it down."""
    if not case.rule.action.impairs:
        return False
    lost = case.facts.read_up(case.rule.action.impairs, case.subject)[1]
    if lost is None or lost.status is not Status.OK or not isinstance(lost.value, int | float):
        return False
    return lost.value >= HALF


def _dress(case: Case, answer: Answer, speaker: str) -> Advice:
    spec: ActionSpec = case.rule.action
    info = buckets()[answer.bucket]
    own = spec.bucket is None or spec.bucket is answer.bucket
    command = answer.command or (spec.command if own and spec.command else _general(info.command, case))
    return Advice(
        answer.bucket,
        speaker,
        answer.text or (spec.text if own and spec.text else info.text),
        fill(command, case.subject, case.facts, case.events),
        answer.risk or (spec.risk or info.risk if own else info.risk),
        _at_least(answer.usable or (spec.usable or info.usable if own else info.usable), case.rule, info),
        answer.until or (spec.until if own else NO_TEXT) or _general_until(info, case),
        answer.runbook
        or (info.runbook if case.rule.split_by == "code" or speaker == "dcgm" else "")
        or spec.runbook
        or info.runbook,
        (*answer.then, *spec.then),
        answer.because,
    )


# Of what is run, not of what it runs on. A log is what a program has written; a setting that it asks for is its own.
_OF_PROGRAMS = frozenset(
    {
        Scope.PROCESS,
        Scope.CONTAINER,
        Scope.POD,
        Scope.JOB,
        Scope.RANK,
        Scope.COLLECTIVE,
        Scope.OPERATOR,
        Scope.KERNEL,
        Scope.ITERATION,
        Scope.DOCUMENT,
        Scope.OBJECT,
    }
)


def _at_least(usable: Usable, rule: Rule, info: BucketInfo) -> Usable:
    """`usable`, and never a yes for an error of the machine: only where a program is what failed does the rest go on as before."""
    if usable is not Usable.YES or rule.severity.rank < Severity.ERROR.rank:
        return usable
    of_program = info.of_program or (info.bucket is Bucket.CHANGE_SETTING and rule.scope in _OF_PROGRAMS)
    return usable if of_program and rule.severity is Severity.ERROR else Usable.IMPAIRED


_REBOOTED = Text("the node has been rebooted", "节点已重启")


def _general_until(info: BucketInfo, case: Case) -> Text:
    """Until when, in the words of the bucket; of a reboot that is for no GPU, without the GPU."""
    told = (o.value.get("gpu") for o in case.events if isinstance(o.value, Event))
    of_gpu = any(s.up(Scope.GPU) for s in (case.subject, *(o.subject for o in case.events))) or any(told)
    gone = not case.events or ("gpu-missing" in case.rule.symptoms and not any(o.fact == "aer" for o in case.events))
    return info.until if info.bucket is not Bucket.RESTART_BM or of_gpu or gone else _REBOOTED


def _general(command: str, case: Case) -> str:
    """The command of a bucket; none of NVIDIA's for a GPU that another vendor made."""
    if not command.startswith("nvidia-"):
        return command
    seen = case.facts.read_up("gpu.vendor", case.subject)[1]
    other = seen is not None and seen.status is Status.OK and seen.value != "nvidia"
    return "" if other else command


def fill(command: str, subject: Subject, facts: FactBase, events: Sequence[Observation] = ()) -> str:
    """Placeholders of a command filled with what is known, shell-quoted; an unknown one stays visible."""
    if "{" not in command:
        return command
    values: dict[str, str] = {"node": subject.host}
    device = subject.up(Scope.GPU) or next((g for o in events if (g := o.subject.up(Scope.GPU))), None)
    if device is not None:
        # nvidia-smi -i takes an index, a UUID or a PCI address; one that a log hides is none of them
        known = not device.id.startswith(("unknown:", *TOOL_NUMBERS))
        values["gpu_pci"] = device.id.removeprefix("index:") if known else ""
        index = facts.current("gpu.index", device)
        if index is not None and index.status is Status.OK:
            values["gpu_index"] = str(index.value)
        elif device.id.startswith("index:") or (values["gpu_pci"] and not command.startswith("dcgmi ")):
            # dcgmi takes a number and nothing else
            values["gpu_index"] = values["gpu_pci"]
    place = next((p for x in (subject, *(o.subject for o in events)) if (p := _pci(x))), "")
    if place:
        values["pci"] = place
    thing = subject.up(Scope.OBJECT)
    if thing is not None:  # a mount by its path, a unit by its name
        values["mount" if thing.id.startswith("/") else "unit"] = thing.id
    pod = subject.up(Scope.POD)
    if pod is not None:
        values["namespace"], _, values["pod"] = pod.id.rpartition("/")
    for o in events:
        if isinstance(o.value, Event):
            if test := o.value.get("test"):
                values["dcgm_run"] = run_of(str(test))
            values |= {
                k: str(v) for k, v in o.value.fields.items() if k in ("pid", "process", "link") and v is not None
            }
    # In one pass: a value that a stranger wrote may itself hold a placeholder, which must stay inside its quotes.
    return _PLACEHOLDER.sub(lambda m: _quote(v) if (v := values.get(m[1])) else m[0], command)


def _pci(subject: Subject) -> str:
    """The address of a device on the PCI bus; empty where another name of it is all that is known."""
    device = subject.up(Scope.GPU) or subject.up(Scope.PCI)
    return device.id if device is not None and is_pci(device.id) else ""


def _quote(value: str) -> str:
    import shlex

    return shlex.quote(value)


# --- resolvers ----------------------------------------------------------------------------


def _recovery154(case: Case) -> Answer | None:
    """The driver's own word on this GPU: the latest XID 154 that can be about the finding, else what a tool reads."""
    lines = [o for o in _here(case, 154) if isinstance(o.value, Event) and o.value.get("recovery")]
    about = _about(case)
    told_by = {e.source.call for e in case.events}
    clocks = {e.clock for e in case.events if e.at is not None}
    # without a time in common only the same text says that the two belong together
    near = [o for o in lines if about(o) and (o.source.call in told_by or (o.at is not None and o.clock in clocks))]
    if near:
        last = max(near, key=lambda o: (o.at is not None, o.at or 0, o.source.line or 0))
        answer = RECOVERY.get(str(last.value.get("recovery"))) if isinstance(last.value, Event) else None
        return replace(answer, because=(last,)) if answer else None
    found = case.facts.read_up("gpu.recovery_action", case.subject)[1]
    if found is None or found.status is not Status.OK or not isinstance(found.value, str):
        return None
    answer = RECOVERY.get(found.value)
    if answer is None or (lines and found.origin is Origin.DERIVED) or not about(found):
        return None
    return replace(answer, because=(found,))


def _here(case: Case, *codes: int) -> list[Observation]:
    """XIDs with these codes on exactly the subject of the finding."""
    found = case.facts.events_coded("xid", case.subject, frozenset(codes))
    return [o for o in found if o.subject == case.subject and isinstance(o.value, Event) and o.value.code in codes]


def _about(case: Case) -> Callable[[Observation], bool]:
    """Whether a recovery action printed (or read) at some time can follow from the events of the finding.

    It may stand a burst ahead of them. What an application caused is over when its burst ends; a GPU
    that is sick stays so, and the driver may say it later.
    """
    codes = {case.rule.xid, *(o.value.code for o in case.events if isinstance(o.value, Event) and "xid" in o.fact)}
    return _near(case, BURST, BURST if codes & OVER_SOON else STICKY)


def _near(case: Case, before: int, after: int) -> Callable[[Observation], bool]:
    """Whether something lies at most `before` ns ahead of an event of the finding or `after` ns behind one.

    What tells no time, or the time of another clock than all of them, may.
    """
    times: dict[Clock, list[int]] = {}
    for o in case.events:
        if o.at is not None:
            times.setdefault(o.clock, []).append(o.at)
    for known in times.values():
        known.sort()

    def holds(o: Observation) -> bool:
        known = times.get(o.clock)
        if o.at is None or known is None:
            return True
        first = bisect_left(known, o.at - after)
        return first < len(known) and known[first] <= o.at + before

    return holds


def _field(case: Case, name: str) -> tuple[Any, Observation] | None:
    for o in reversed(case.events):
        if isinstance(o.value, Event) and o.value.get(name):
            return o.value.get(name), o
    return None


def _decoded(case: Case) -> Answer | None:
    """The sub-code's own action (NVLink5, sheet "144-150 Decode"): the strongest of the burst."""
    best: Answer | None = None
    for o in case.events:
        if not isinstance(o.value, Event) or not o.value.get("decoded"):
            continue
        word = str(o.value.get("bucket") or "")
        if word not in Bucket.__members__:
            continue
        answer = Answer(Bucket(word), (o,))
        if best is None or buckets()[answer.bucket].strength > buckets()[best.bucket].strength:
            best = answer
    return best


_SUPPORT = Text(
    "When it comes again, NVIDIA's catalogue has support look into it (nvidia-bug-report.sh).",
    "若再次出现，NVIDIA 错误目录建议联系支持（nvidia-bug-report.sh）。",
)


def _catalogue(case: Case) -> Answer | None:
    """NVIDIA's immediate action for the code, as the catalogue lists it."""
    found = _field(case, "bucket")
    if found is None or found[0] not in Bucket.__members__:
        return None
    event = found[1].value
    deeper = event.get("investigate") if isinstance(event, Event) and event.get("severity") != "info" else None
    later = (_SUPPORT,) if found[0] == Bucket.IGNORE and deeper == Bucket.CONTACT_SUPPORT else ()
    return Answer(Bucket(found[0]), (found[1],), later)


_SINCE = Text(
    "Look into the kernel log of the node for when XID {code} was: the gauge does not tell. Unless it was done since: {action}",
    "在该节点的内核日志中查看 XID {code} 发生的时间：该指标不说明时间。若此后尚未处理：{action}",
)


def _kept(case: Case) -> Answer | None:
    """A code that a gauge keeps: what NVIDIA's catalogue asks for, where it is more than of a program; whether it was done, no gauge tells."""
    from knowledge.catalog.xid import xid

    found = _field(case, "bucket")
    code = found[1].value.code if found is not None and isinstance(found[1].value, Event) else None
    if found is None or code is None or found[0] not in Bucket.__members__:
        return None
    info, entry = buckets()[Bucket(found[0])], xid(code)
    if info.usable is Usable.YES or entry is None:
        return None
    text = Text(*(_SINCE.in_(n).format(code=code, action=info.text.in_(n)) for n in ("en", "zh")))
    return Answer(Bucket.MONITOR, (found[1],), entry.workflow, text)


_TEST_AGAIN = Text(
    "Then run the same test again ({command}): it has to pass.", "然后再次运行同一测试（{command}），须通过。"
)


def _dcgm(case: Case) -> Answer | None:
    """What the message of a DCGM test or watch asks for, by what it speaks of; the strongest of several."""
    from knowledge.catalog.dcgm import meant

    spec, best = case.rule.action, None
    for o in case.events:
        number = o.value.get("error_id") if isinstance(o.value, Event) else None
        message = str(o.value.get("message") or "") if isinstance(o.value, Event) else ""
        found = meant(message, number if isinstance(number, int) else None)
        if found is None or buckets()[Bucket(found.bucket)].strength <= buckets()[Bucket.ASK_PLATFORM].strength:
            continue
        info = buckets()[Bucket(found.bucket)]
        if best is not None and info.strength <= buckets()[best.bucket].strength:
            continue
        usable = max(spec.usable or info.usable, info.usable, key=lambda u: u.rank)
        step = found.step or info.text
        text = Text(f"{found.meaning.en} {step.en}", f"{found.meaning.zh}{step.zh}")
        command = fill(spec.command, case.subject, case.facts, case.events)
        again = Text(*(_TEST_AGAIN.in_(lang).replace("{command}", command) for lang in ("en", "zh")))
        best = Answer(
            info.bucket, (o,), (again,), text, command=found.command, usable=usable, until=info.until or spec.until
        )
    return best


_SOUND = Text("nvidia-smi and a small CUDA program work on the node", "节点上的 nvidia-smi 与简单 CUDA 程序可正常运行")


def _cuda(case: Case) -> Answer | None:
    """What CUDA's own code asks for, of lines that only pass it on. The GPU is suspect where NVIDIA's text says so."""
    from knowledge.catalog.cuda import Hardware, status

    found = _field(case, "cuda_code")
    entry = status(found[0]) if found is not None and isinstance(found[0], int) else None
    if found is None or entry is None:
        return None
    info = buckets()[Bucket(entry.bucket)]
    sick = entry.hardware is Hardware.YES or (
        entry.hardware is Hardware.POSSIBLE and info.bucket is Bucket.ASK_PLATFORM
    )
    text = Text(f"{entry.cause.en} {info.text.en}", f"{entry.cause.zh}{info.text.zh}")
    usable = max(info.usable, Usable.NOT_YET if sick else info.usable, key=lambda u: u.rank)
    return Answer(info.bucket, (found[1],), text=text, usable=usable, until=info.until or (_SOUND if sick else NO_TEXT))


_NO_WORD = Text(
    "NVIDIA lists no action for this code. Keep new work off the GPU, look for the driver's own recovery action (XID 154; GPU Recovery Action in the command's output) and do that; ask NVIDIA's support when it comes again.",
    "NVIDIA 未为该码列出处理动作。不要给该 GPU 派新任务，查看驱动自己的恢复动作（XID 154；命令输出中的 GPU Recovery Action）并照做；再次出现则联系 NVIDIA 支持。",
)
_NO_WORD_GRAVE = Text(
    "NVIDIA lists no action for this code, and it is fatal: drain the node and look for the driver's own recovery action (XID 154, `nvidia-smi -q`). Without one, reboot; contact NVIDIA's support when it comes again.",
    "NVIDIA 未为该致命码列出处理动作：排空节点，查看驱动自己的恢复动作（XID 154，`nvidia-smi -q`）。若没有则重启；再次出现则联系 NVIDIA 支持。",
)


def _unlisted(case: Case) -> Answer | None:
    """A code without an action in NVIDIA's catalogue: that of the code it accompanies (171, 172: 48), else by how grave it is."""
    if not case.events or not isinstance(event := case.events[-1].value, Event) or event.code is None:
        return None
    from knowledge.catalog.xid import xid

    entry = xid(event.code)
    if entry is not None and entry.companion_of is not None and (workflow := _WORKFLOWS.get(entry.companion_of)):
        return workflow(case)
    severity = event.get("severity")
    if severity == "critical":
        return Answer(Bucket.RESTART_BM, text=_NO_WORD_GRAVE)
    look = "nvidia-smi -q -i {gpu_pci}"
    return Answer(Bucket.ASK_PLATFORM, text=_NO_WORD, command=look) if severity == "error" else None


def _workflow(case: Case) -> Answer | None:
    """NVIDIA's workflows that depend on what else happened on the same GPU in the burst."""
    if case.rule.xid is None:
        return None
    workflow = _WORKFLOWS.get(case.rule.xid)
    return workflow(case) if workflow else None


def _nearby(case: Case, *codes: int) -> tuple[Observation, ...]:
    """XIDs with these codes on the same GPU within the burst of the finding."""
    return tuple(filter(_near(case, BURST, BURST), _here(case, *codes)))


_UNREPAIRED = Text(
    "The reset does not repair a row whose remapping failed (XID 64): keep the bug report, run the field diagnostic and have the board replaced (RMA) when the failure flag stands or the diagnostic fails.",
    "复位无法修复重映射失败的行（XID 64）：保留错误报告，运行现场诊断；若失败标志仍在或诊断失败，则申请更换板卡（RMA）。",
)


def _workflow_48(case: Case) -> Answer:
    """WORKFLOW_XID_48: with 63 or 64 drain and reset; alone reset; then the field diagnostic, which decides where the repair failed (64)."""
    repair = _nearby(case, 63, 64)
    field_diag = Text(
        "After the reset, check remapped rows and the SRAM threshold flag; run the field diagnostic if either calls for it.",
        "复位后检查行重映射和 SRAM 阈值标志；若任一要求则运行现场诊断。",
    )
    failed = any(isinstance(o.value, Event) and o.value.code == 64 for o in repair)
    return Answer(
        Bucket.DRAIN_AND_RESET if repair else Bucket.RESET_GPU, repair, (_UNREPAIRED if failed else field_diag,)
    )


KILLED = 60 * 10**9  # ns from the end of a process to the teardown of its work: Slurm's KillWait is 30 s
_ENDED = Text(
    "The GPU needs nothing: the driver removes the work of a process that ended or was killed. {who}",
    "GPU 无需处理：进程退出或被杀死后，驱动会清除其工作。{who}",
)
_BY_MEMORY = Text("Here the kernel killed {name} for want of memory.", "此处为内核因内存不足杀死了 {name}。")
_BY_SLURM = Text("Here Slurm ended step {name}.", "此处为 Slurm 结束了作业步 {name}。")
_BY_NOBODY = Text(
    "Find who ended the process: the scheduler's log, the OOM killer, the program's output. If somebody did, the GPU needs nothing. If nobody did and the node has NVSwitches, restart the fabric manager: NVIDIA's workflow for this XID alone.",
    "请查明是谁结束了该进程：调度器日志、OOM killer、程序输出。若确有其因，GPU 无需处理；若没有且节点带 NVSwitch，则重启 fabric manager（NVIDIA 对单独出现的该 XID 的流程）。",
)
_UNTIL_KNOWN = Text("it is known what ended the process", "查明进程因何结束")


def _workflow_45(case: Case) -> Answer:
    """WORKFLOW_XID_45: follow the other XID; alone it is what is left of a process, and who ended that is named.

    A job on several GPUs is torn down on all of them: an XID of another GPU of the node counts too. Alone NVIDIA's table has
    the fabric manager restarted. On a fleet nearly every such line is a job that was ended (NVSentinel 1710): so that is
    looked for first, and only where several processes ended does the GPU's new work wait for it.
    """
    near = _near(case, BURST, BURST)
    where = case.subject.up(Scope.NODE) or case.subject
    for o in case.facts.events_within("xid", where):
        if not isinstance(o.value, Event) or o.value.code in (45, None):
            continue
        if o.value.code == 154 and o.value.get("recovery") not in RECOVERY:
            continue
        if o.subject == case.subject or near(o):
            return Answer(Bucket.IGNORE)
    killed = _killer(case, where)
    if killed is None:
        look = "systemctl status nvidia-fabricmanager"
        pids = {o.value.get("pid") for o in case.events if isinstance(o.value, Event)}
        if len(pids) == 1 and None not in pids:  # one process, with all its channels: what a killed job leaves
            return Answer(Bucket.RESTART_FM, text=_BY_NOBODY, command=look, usable=Usable.YES)
        return Answer(Bucket.RESTART_FM, text=_BY_NOBODY, command=look, usable=Usable.IMPAIRED, until=_UNTIL_KNOWN)
    who, by = killed
    text = Text(*(_ENDED.in_(lang).replace("{who}", who.in_(lang)) for lang in ("en", "zh")))
    return Answer(Bucket.IGNORE, (by,), text=text)


def _killer(case: Case, where: Subject) -> tuple[Text, Observation] | None:
    """Who ended the process of a teardown: the OOM killer (by its pid, or just before), or Slurm."""
    pids = {o.value.get("pid") for o in case.events if isinstance(o.value, Event)} - {None}
    for fact, said, field in (("oom_kill", _BY_MEMORY, "process"), ("slurm_step_ended", _BY_SLURM, "step")):
        for o in case.facts.events_within(fact, where):
            if isinstance(o.value, Event) and (o.value.get("pid") in pids or _just_before(case, o)):
                name = str(o.value.get(field) or "?")
                words = (said.in_(lang).replace("{name}", name) for lang in ("en", "zh"))
                return Text(*words), o
    return None


def _just_before(case: Case, o: Observation) -> bool:
    """Whether an event of the finding follows `o` within `KILLED`."""
    return any(
        e.at is not None and o.at is not None and e.clock is o.clock and 0 <= e.at - o.at <= KILLED for e in case.events
    )


_DIAGNOSE = Text(
    "The same place failed again: run `dcgmi diag -r 3` (or the field diagnostic) on a drained node before blaming the application.",
    "同一位置再次出错：在排空的节点上运行 `dcgmi diag -r 3`（或现场诊断），再归咎于应用程序。",
)


_SWAP = Text(
    "The same program failed again: look for the fault in it, and run it on another GPU before this one is blamed.",
    "同一程序再次出错：请先在程序中查找，并换一块 GPU 运行，再怀疑该 GPU。",
)
SEVERAL = 3  # programs, one after another on one GPU alone: four are `programs-fail-in-turn`
_SEVERAL = Text(
    "Three different programs failed on this GPU and on no other: swap first. Run them on another GPU, and a program that is known to work on this one; if only this GPU fails, drain the node and run `dcgmi diag -r 3` on it.",
    "三个不同的程序只在该 GPU 上出错：先做交换测试。把它们放到另一块 GPU，并在该 GPU 上运行一个已知正常的程序；若只有该 GPU 出错，则排空节点并对其运行 `dcgmi diag -r 3`。",
)
_ONE_PROGRAM = Text(
    "The same program faulted on several GPUs: look for the fault in it (`compute-sanitizer`), a restart alone meets it again.",
    "同一程序在多个 GPU 上出错：请在程序中查找（`compute-sanitizer`），仅重启会再次出错。",
)


def _on_several(case: Case, code: int) -> bool:
    """Whether one program, by its name, met this code on other GPUs of the node too."""
    where = case.subject.up(Scope.NODE) or case.subject
    told = (o for o in case.facts.events_coded("xid", where, frozenset({code})) if isinstance(o.value, Event))
    ours = {o.value.get("process") for o in case.events if isinstance(o.value, Event)} - {None, "", "<unknown>"}
    return any(o.subject != case.subject and o.value.get("process") in ours for o in told if isinstance(o.value, Event))


def _workflow_13(case: Case) -> Answer:
    """WORKFLOW_XID_13: restart the application; the same GPC and TPC again within a day asks for a diagnostic."""
    return _of_application(case, 13, ("gpc", "tpc"))


def _workflow_31(case: Case) -> Answer:
    """WORKFLOW_XID_31: restart the application; the same GPU again within a day asks for a diagnostic."""
    return _of_application(case, 31, ())


_RESTART = Text("Restart the application.", "重启应用程序。")


def _of_application(case: Case, code: int, same: tuple[str, ...]) -> Answer:
    """The restart; what is to be diagnosed is not said to need nothing."""
    if _on_several(case, code):
        return Answer(Bucket.RESTART_APP, then=(_ONE_PROGRAM,))
    if any(isinstance(o.value, Event) and o.value.get("programs_on_gpu") == SEVERAL for o in case.events):
        return Answer(Bucket.RESTART_APP, text=_SEVERAL)
    if _recurs(case, same):
        alone = all(isinstance(o.value, Event) and o.value.get("programs_on_gpu") == 1 for o in case.events)
        return Answer(Bucket.RESTART_APP, then=(_SWAP if alone else _DIAGNOSE,), text=_RESTART)
    return Answer(Bucket.RESTART_APP)


def _recurs(case: Case, same: tuple[str, ...]) -> bool:
    """Two separate bursts at the same place within 24 h (NVSentinel repeats the workflow's "again" that way)."""
    places: dict[tuple[object, ...], list[int]] = {}
    for o in case.events:
        if isinstance(o.value, Event) and o.at is not None:
            key = (o.clock, *(o.value.get(name) for name in same))
            if None not in key:
                places.setdefault(key, []).append(o.at)
    return any(BURST < b - a <= 24 * 3600 * 10**9 for times in places.values() for a, b in pairwise(sorted(times)))


_AT_THE_PEER = Text(
    "This GPU needs nothing: the program on the GPU that asked made an access it may not make. Look there for its error (XID 13 or 31, its own log); if it comes back, run it under `compute-sanitizer`.",
    "该 GPU 无需处理：是发起访问的 GPU 上的程序做了不允许的访问。请在那里查找其错误（XID 13 或 31、程序自身日志）；若再次出现，用 `compute-sanitizer` 运行。",
)


def _workflow_137(_: Case) -> Answer:
    """XID_137_FLOW (108, 137): nothing to do on this GPU; the access came from a peer."""
    return Answer(Bucket.IGNORE, text=_AT_THE_PEER)


_WORKFLOWS: Mapping[int, Callable[[Case], Answer]] = {
    13: _workflow_13,
    31: _workflow_31,
    45: _workflow_45,
    48: _workflow_48,
    108: _workflow_137,
    137: _workflow_137,
}
RESOLVERS: Mapping[str, Callable[[Case], Answer | None]] = {
    "recovery154": _recovery154,
    "decoded": _decoded,
    "workflow": _workflow,
    "catalogue": _catalogue,
    "kept": _kept,
    "unlisted": _unlisted,
    "dcgm": _dcgm,
    "cuda": _cuda,
}
# The facts that a resolver looks at beside the events of the finding: who knows them may change the advice.
LOOKS_AT: Mapping[str, tuple[str, ...]] = {
    "recovery154": ("gpu.recovery_action", "xid"),
    "decoded": (),
    "workflow": ("xid",),  # of XID 45 also who ended the process, which nobody goes looking for because of another code
    "catalogue": (),
    "kept": (),
    "unlisted": ("xid",),
    "dcgm": (),
    "cuda": (),
}
