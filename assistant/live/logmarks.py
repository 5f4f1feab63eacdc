"""What a line of a log means, in a word beside it: its name, how bad it is, and the page about it.

A code has its severity from its catalogue. Any other event is as bad as the rule that it alone makes hold, so that a
line never looks worse, or better, than what is concluded from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from knowledge.language import NO_TEXT, Text
from knowledge.observation import Event, Observation, Status

if TYPE_CHECKING:
    from rules.condition import Condition, EventLeaf
    from rules.loader import RuleSet
    from rules.model import Rule

SEVERITIES = ("", "info", "warning", "error", "critical")  # from the least


class Judged(NamedTuple):
    """What is concluded from an event."""

    severity: str = ""  # of the gravest rule that it alone makes hold; empty when there is none
    rule: str = ""  # that rule's id, else that of one that needs more than this event
    title: Text = NO_TEXT  # of the rule that holds


Judge = Callable[[Observation], Judged]


class Decoded(NamedTuple):
    """What one line tells."""

    label: Text  # "XID 79", "PCIe error"
    meaning: Text
    severity: str  # one of `SEVERITIES`
    topic: str  # the page about it: "xid 79", "rule host-out-of-memory", "fact boot"; empty when there is none
    event: Observation

    @property
    def grave(self) -> bool:
        """Whether it is an error or worse."""
        return self.severity in ("error", "critical")

    def more(self, lang: str) -> str:
        """What its catalogue adds: what it is about, and the vendor's action; empty where the meaning is all."""
        kind, _, number = self.topic.partition(" ")
        if kind == "xid":
            from assistant.topics._common import action_words
            from knowledge.catalog.xid import xid

            entry = xid(int(number))
            if entry is None:
                return ""
            action = str(entry.immediate)
            said = [entry.description.in_(lang), *([action_words(action, lang)] if action else [])]
            return ("" if lang == "zh" else " ").join(said)
        if kind == "sxid" and isinstance(self.event.value, Event):
            from knowledge.catalog.sxid import advise

            return advise(int(number), str(self.event.value.get("severity_word") or "")).text.in_(lang)
        return ""


def decoded(found: Iterable[Observation], judge: Judge) -> Decoded | None:
    """The gravest of what was seen in one line; None when it is nothing of interest."""
    every = [d for o in found if (d := _decoded(o, judge)) is not None]
    return max(every, key=lambda d: SEVERITIES.index(d.severity), default=None)


def _decoded(o: Observation, judge: Judge) -> Decoded | None:
    if o.fact == "xid" and o.status is Status.FAILED:
        return Decoded(Text("XID ?", "XID ?"), Text(o.detail, "该行在 XID 编号之前被截断"), "warning", "", o)
    if o.status is not Status.OK or not isinstance(o.value, Event):
        return None
    if o.fact in ("xid", "xid_reported") and o.value.code is not None:
        return _xid(o, o.value.code)
    if o.fact == "sxid" and o.value.code is not None:
        return _sxid(o, o.value.code, str(o.value.get("severity_word") or ""))
    found = judge(o)
    page = f"rule {found.rule}" if found.rule else f"fact {o.fact}"
    return Decoded(label(o.fact), found.title or _meaning(o.fact), found.severity or "info", page, o)


def _xid(o: Observation, code: int) -> Decoded:
    from knowledge.catalog.xid import xid

    entry, name = xid(code), Text(f"XID {code}", f"XID {code}")
    if entry is None:  # a code that nobody explains is not known to be harmless
        return Decoded(name, Text("not in NVIDIA's catalogue", "NVIDIA 目录未收录"), "warning", "", o)
    return Decoded(name, entry.title, str(entry.severity), f"xid {code}", o)


def _sxid(o: Observation, code: int, word: str) -> Decoded:
    from knowledge.catalog.sxid import advise, sxid

    entry, advice, name = sxid(code), advise(code, word), Text(f"SXid {code}", f"SXid {code}")
    severity = str(advice.severity or "warning")
    if entry is None:
        return Decoded(name, Text("not in the catalogue", "目录未收录"), severity, "", o)
    return Decoded(name, entry.title, severity, f"sxid {code}", o)


def _meaning(fact: str) -> Text:
    from knowledge.facts import vocabulary

    spec = vocabulary().get(fact)
    return spec.meaning if spec is not None else NO_TEXT


# --- how bad ------------------------------------------------------------------------------


def judge_of(ruleset: RuleSet) -> Judge:
    """What the rules of `ruleset` conclude from one event."""
    from rules.compare import field_holds
    from rules.condition import EventLeaf, leaves
    from rules.model import Rules, Severity

    known: dict[str, list[tuple[EventLeaf, Rule, bool]]] = {}  # by fact: a leaf, its rule, whether it alone is enough

    def about(fact: str) -> list[tuple[EventLeaf, Rule, bool]]:
        rules = ruleset.rules.about(frozenset({fact})) if isinstance(ruleset.rules, Rules) else ruleset.rules
        out = []
        for rule in rules:
            alone = [] if rule.severity_from else list(_alone(rule.when))
            mine = [leaf for leaf in leaves(rule.when) if isinstance(leaf, EventLeaf) and leaf.event == fact]
            out += [(leaf, rule, leaf in alone) for leaf in mine if not leaf.negated]
        return out

    def judge(o: Observation) -> Judged:
        if o.fact not in known:
            known[o.fact] = about(o.fact)
        event = o.value
        if not isinstance(event, Event):
            return Judged()
        fits = [(rule, alone) for leaf, rule, alone in known[o.fact] if all(field_holds(t, event) for t in leaf.where)]
        held = [rule for rule, alone in fits if alone]
        if not held:
            return Judged(rule=fits[0][0].id if fits else "")
        best = max(held, key=lambda rule: Severity(rule.severity).rank)
        return Judged(str(best.severity), best.id, best.title)

    return judge


def _alone(condition: Condition) -> Iterator[EventLeaf]:
    """The leaves of which one is enough: one event, once."""
    from rules.condition import All, Any_, EventLeaf

    if isinstance(condition, Any_) or (isinstance(condition, All) and len(condition.children) == 1):
        for child in condition.children:
            yield from _alone(child)
    elif isinstance(condition, EventLeaf):
        once = condition.at_least == 1 and condition.at_most is None and condition.after is None
        if once and not condition.negated:
            yield condition


# --- what it is called --------------------------------------------------------------------


def label(fact: str) -> Text:
    """A short name of a kind of event: ``link_carrier`` -> "link"."""
    found = LABELS.get(fact)
    plain = fact.replace("_", " ")
    return Text(*found) if found else Text(plain, plain)


LABELS: Mapping[str, tuple[str, str]] = {
    # NVIDIA's driver
    "device_plugin_unhealthy": ("GPU withheld", "GPU 停止分配"),
    "gpu_lost": ("GPU lost", "GPU 丢失"), "gpu_init_failed": ("GPU init failed", "GPU 初始化失败"),
    "gpu_device_busy_removed": ("GPU in use", "GPU 占用中"), "gpu_reset_demanded": ("reset required", "须复位"),
    "gpu_reset_attempt": ("GPU reset asked", "请求复位 GPU"), "slurm_step_ended": ("Slurm ended job", "Slurm 结束作业"),
    "gpu_reset_failed": ("GPU reset failed", "GPU 复位失败"), "uvm_fatal_error": ("UVM stopped", "UVM 停止"),
    "nvlink_training_failed": ("NVLink training", "NVLink 训练失败"), "nvswitch_lost": ("NVSwitch lost", "NVSwitch 丢失"),
    "slurmctld_inval": ("Slurm INVAL", "Slurm INVAL"), "gpu_power_state_stuck": ("GPU power state", "GPU 电源状态"),
    "gsp_crash": ("GSP crash", "GSP 崩溃"), "gsp_heartbeat_timeout": ("GSP silent", "GSP 无心跳"),
    "gsp_rpc_timeout": ("GSP timeout", "GSP 超时"), "pmu_halted": ("PMU halted", "PMU 停止"),
    "nvidia_assertion": ("driver assertion", "驱动断言"), "nvlink_driver_message": ("NVLink", "NVLink"),
    "driver_load_failed": ("driver load", "驱动加载失败"), "driver_loaded": ("driver loaded", "驱动加载"),
    "gpu_reset": ("GPU reset", "GPU 复位"), "driver_library_mismatch": ("driver mismatch", "驱动不匹配"),
    "peermem_invalid_context": ("peermem", "peermem"),
    # drivers of other makers
    "amdgpu_hang": ("amdgpu hang", "amdgpu 挂起"),
    "amdgpu_bad_pages": ("amdgpu pages", "amdgpu 坏页"), "amdgpu_fault": ("amdgpu fault", "amdgpu 故障"),
    "amdgpu_init_failed": ("amdgpu init", "amdgpu 初始化失败"), "amdgpu_lost": ("amdgpu GPU lost", "amdgpu GPU 丢失"),
    "amdgpu_ras": ("amdgpu RAS", "amdgpu RAS"), "amdgpu_reset": ("amdgpu reset", "amdgpu 复位"),
    "amdgpu_ring_timeout": ("amdgpu timeout", "amdgpu 超时"), "intel_gpu_hang": ("Intel GPU hang", "Intel GPU 挂起"),
    "intel_gpu_hardware_error": ("Intel GPU error", "Intel GPU 错误"), "intel_gpu_wedged": ("Intel GPU dead", "Intel GPU 停用"),
    "ascend_driver_error": ("Ascend driver", "昇腾驱动"),
    # PCI Express and the machine
    "aer": ("PCIe error", "PCIe 错误"), "pcie_containment": ("PCIe contained", "PCIe 隔离"),
    "pcie_link_down": ("PCIe link down", "PCIe 断链"), "pcie_bandwidth_limited": ("PCIe bandwidth", "PCIe 带宽"),
    "pci_power_state_stuck": ("PCI power state", "PCI 电源状态"), "machine_check": ("machine check", "机器检查"),
    "pci_reset_failed": ("PCI reset failed", "PCI 复位失败"), "iommu_fault": ("IOMMU fault", "IOMMU 错误"), "nmi": ("NMI", "NMI"),
    "host_memory_error": ("memory error", "内存错误"), "hardware_error": ("hardware error", "硬件错误"),
    "cpu_throttled": ("CPU throttled", "CPU 降频"), "power_event": ("power", "电源"),
    # the kernel
    "boot": ("boot", "启动"), "oom_kill": ("out of memory", "内存耗尽"), "kernel_panic": ("kernel panic", "内核崩溃"),
    "kernel_oops": ("kernel oops", "内核异常"), "sysrq_crash": ("sysrq crash", "sysrq 崩溃"),
    "soft_lockup": ("CPU lockup", "CPU 锁死"), "hung_task": ("task hung", "任务挂起"),
    "process_fault": ("process crash", "进程崩溃"), "filesystem_stall": ("file system", "文件系统停顿"),
    "io_error": ("disk error", "磁盘错误"), "filesystem_damaged": ("file system", "文件系统损坏"), "network_table_full": ("network table", "网络表已满"),
    "page_allocation_failure": ("memory pieces", "内存碎片"), "daemon_disk_full": ("disk full", "磁盘已满"),
    "slurm_failure": ("Slurm error", "Slurm 错误"), "kubelet_runtime_silent": ("runtime silent", "运行时无应答"),
    "kubernetes_condition": ("node condition", "节点状况"),
    "pod_refused": ("pod refused", "pod 被拒绝"), "container_gpus_refused": ("GPUs refused", "GPU 被拒"),
    "link_carrier": ("link", "链路"), "nic_error": ("NIC error", "网卡错误"),
    # daemons
    "fm_gave_up": ("fabric manager", "Fabric Manager"), "imex_connection_lost": ("IMEX", "IMEX"), "imex_error": ("IMEX", "IMEX"),
    "fm_error": ("fabric manager", "Fabric Manager"), "fm_failed": ("fabric manager", "Fabric Manager"),
    "fm_nothing_to_do": ("fabric manager", "Fabric Manager"), "fm_version_mismatch": ("fabric manager", "Fabric Manager"),
    "hostengine_failed": ("DCGM", "DCGM"), "modprobe_failed": ("modprobe", "modprobe"),
    "nvidia_service_failed": ("NVIDIA service", "NVIDIA 服务"), "persistenced_failed": ("persistenced", "persistenced"),
    # jobs
    "training_pace": ("step times", "步时"), "slurm_step_unkillable": ("unkillable step", "作业杀不掉"), "serving_trouble": ("inference server", "推理服务"), "container_banner": ("container start", "容器启动"),
    "nccl_error": ("NCCL error", "NCCL 错误"), "nccl_watchdog_timeout": ("NCCL timeout", "NCCL 超时"),
    "nccl_desync": ("NCCL desync", "NCCL 不同步"), "cuda_error": ("CUDA error", "CUDA 错误"),
    "cuda_oom": ("CUDA memory", "显存不足"), "python_error": ("Python error", "Python 错误"),
    "rank_failed": ("rank failed", "rank 失败"), "job_terminated": ("job ended", "作业终止"),
}  # fmt: skip
