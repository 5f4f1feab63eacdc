"""What this installation can and cannot see, and the one command that would mend each gap.

Facts only, gathered once; `assistant.commands.doctor` prints them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from knowledge.facts import Kind, vocabulary
from knowledge.language import NO_TEXT, Text
from knowledge.observation import Status
from knowledge.record import dataclass
from probes.live import ProbeSpec
from probes.runner import ProbeResult
from rules.condition import All, Any_, Condition, facts_of
from rules.model import Rule

PACKAGES = ("assistant", "rules", "probes", "knowledge", "tui")
# Binary -> what gives it. Names of Debian's and Red Hat's families differ; both are said where they do.
INSTALL: Mapping[str, str] = {
    "nvidia-smi": "install the NVIDIA driver (nvidia-utils-XXX, or the cuda-drivers metapackage)",
    "dcgmi": "apt install datacenter-gpu-manager (dnf install datacenter-gpu-manager)",
    "ibstat": "apt install infiniband-diags (dnf install infiniband-diags)",
    "lspci": "apt install pciutils (dnf install pciutils)",
    "journalctl": "",
    "dmesg": "apt install util-linux",
    "systemctl": "",
}
# Linux capabilities that make a difference, by bit (include/uapi/linux/capability.h).
CAPABILITIES: Mapping[str, int] = {
    "CAP_SYSLOG": 34,
    "CAP_SYS_PTRACE": 19,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_ADMIN": 21,
}
BASE = frozenset({"nvml", "kernel-log", "pci"})  # what the health of a machine rests on


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at."""

    name: str
    ok: bool | None  # None: it is not there, and need not be
    says: Text
    fix: Text = NO_TEXT
    rules: int = 0  # rules that cannot be decided without it


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of what a look at a machine can decide can be decided on this one."""

    rules: int = 0  # that the probes can answer between them
    lost: int = 0  # of those, the ones that nothing here answers
    no_gpu: bool = False  # the bus was read, and no GPU is on it


@dataclass(frozen=True, slots=True)
class Checkup:
    """Everything that `doctor` tells."""

    installation: tuple[Row, ...]  # of another machine: the way to it, and what is there
    rights: tuple[Row, ...]
    probes: tuple[Row, ...]
    host: str = ""  # another machine
    reach: Reach = Reach()

    @property
    def broken(self) -> bool:
        """True when something is wrong, rather than absent, that a diagnosis of this machine rests on."""
        return any(r.ok is False for r in self.installation) or any(
            r.ok is False and r.name in BASE for r in self.probes
        )


# --- the installation ---------------------------------------------------------------------


def strangers(folders: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Our package names that another distribution fills: name, and whose it is.

    The five names are plain words (DESIGN section 2), so another package may have taken one.
    `folders` gives, for each, where Python finds it.
    """
    owners = metadata.packages_distributions()
    ours = {Path(__file__).parent.parent.resolve()}
    out = []
    for name in PACKAGES:
        others = [d for d in owners.get(name, ()) if d.lower() != "gpudiag"]
        found = {Path(p).parent.resolve() for p in folders.get(name, ())}
        if others:
            out.append((name, ", ".join(sorted(set(others)))))
        elif found and not found & ours:
            out.append((name, str(min(found))))
    return out


def installation(state: Path, problems: Iterable[tuple[str, Text, Text]] = ()) -> list[Row]:
    """Packages, folders; and `problems` found elsewhere: name, what is wrong, what mends it."""
    import importlib

    folders = {name: list(importlib.import_module(name).__path__) for name in PACKAGES}
    taken = strangers(folders)
    rows = [
        Row(
            name, False, Text(f"the package {name} is another program's ({whose})", f"包 {name} 属于另一个程序（{whose}）"),
            Text("install gpudiag in an environment of its own: uv tool install gpudiag, or pipx install gpudiag",
                 "请将 gpudiag 安装在独立环境中：uv tool install gpudiag 或 pipx install gpudiag"),
        )
        for name, whose in taken
    ]  # fmt: skip
    if not taken:
        rows.append(Row("packages", True, Text("all five packages are gpudiag's own", "五个包均为 gpudiag 自身所有")))
    rows.append(_writable("state", state))
    rows += [Row(name, False, says, fix) for name, says, fix in problems]
    return rows


def _writable(name: str, folder: Path) -> Row:
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if os.access(there, os.W_OK):
        return Row(name, True, Text(f"{folder} can be written", f"{folder} 可写"))
    return Row(
        name, False, Text(f"{folder} cannot be written: nothing is remembered between runs", f"{folder} 不可写：各次运行之间无法记忆"),
        Text("set GPUDIAG_STATE_DIR to a folder of yours", "将 GPUDIAG_STATE_DIR 设为可写目录"),
    )  # fmt: skip


# --- rights -------------------------------------------------------------------------------


MORE = Text("sudo gpudiag check", "sudo gpudiag check")


def rights(proc: Path = Path("/proc"), euid: int | None = None) -> list[Row]:
    """Who we are, what we may, and what the machine forbids users."""
    return rights_by(lambda name: _text(proc / name), os.geteuid() if euid is None else euid)


def rights_by(read: Callable[[str], str], me: int, more: Text = MORE) -> list[Row]:
    """As `rights`, of a machine whose files below /proc `read` gives (empty for one that cannot be read). `more`: what gives
    more of them."""
    held = _capabilities(read)
    rows = [_who(me, held)]
    restrict = _number(read("sys/kernel/dmesg_restrict"))
    if restrict is not None and restrict != 0 and "CAP_SYSLOG" not in held:
        groups = Text("   (or: sudo usermod -aG systemd-journal,adm $USER, and log in again)",
                      "（或：sudo usermod -aG systemd-journal,adm $USER 后重新登录）")  # fmt: skip
        rows.append(Row(
            "kernel log", False,
            Text("kernel.dmesg_restrict is set and CAP_SYSLOG is missing", "已设置 kernel.dmesg_restrict 且缺少 CAP_SYSLOG"),
            Text(more.en + groups.en, more.zh + groups.zh),
        ))  # fmt: skip
    yama = _number(read("sys/kernel/yama/ptrace_scope"))
    if yama and "CAP_SYS_PTRACE" not in held:
        rows.append(Row(
            "other processes", None,
            Text(f"kernel.yama.ptrace_scope is {yama}: running jobs of others cannot be attached to",
                 f"kernel.yama.ptrace_scope 为 {yama}：无法附加到他人的运行中作业"),
            Text("run as root when a job is to be profiled", "剖析作业时请以 root 运行"),
        ))  # fmt: skip
    mounts = [line.split() for line in read("mounts").splitlines()]
    if me != 0 and any(m[1:3] == ["/proc", "proc"] and "hidepid=" in " ".join(m[3:]) for m in mounts):
        rows.append(Row(
            "other processes", False,
            Text("/proc is mounted with hidepid: processes of other users are not seen", "/proc 以 hidepid 挂载：看不到其他用户的进程"),
            more,
        ))  # fmt: skip
    return rows


def _who(me: int, held: frozenset[str]) -> Row:
    if me == 0 and held >= {"CAP_SYSLOG", "CAP_SYS_PTRACE"}:
        return Row("user", True, Text("root, with all that is needed", "root，具备全部所需权限"))
    names = ", ".join(sorted(held)) or "none"
    who = "root" if me == 0 else f"uid {me}"
    return Row("user", None, Text(f"{who}; capabilities of use: {names}", f"{who}；可用的权能：{names}"))


def _capabilities(read: Callable[[str], str]) -> frozenset[str]:
    for line in read("self/status").splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return frozenset(name for name, bit in CAPABILITIES.items() if mask >> bit & 1)
    return frozenset()


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.lstrip("-").isdigit() else None


# --- probes -------------------------------------------------------------------------------


def sources(
    results: Sequence[ProbeResult], specs: Sequence[ProbeSpec], rules: Sequence[Rule], more: Text = MORE
) -> list[Row]:  # fmt: skip
    """Each probe: what it gave, or why it gave nothing and what would change that. `more`: what gives more rights."""
    known = {spec.name: spec for spec in specs}
    answered = {vocabulary().told(o).name for r in results for o in r.observations if o.status.answered}
    out = []
    for r in results:
        spec = known[r.probe]
        if r.status is Status.OK:
            denied = [o for o in r.observations if o.status is Status.DENIED]
            seconds = f", {r.seconds:.2f} s" if r.seconds is not None else ""
            if denied:
                n = len({o.fact for o in denied})
                out.append(Row(
                    r.probe, None,
                    Text(f"answers in part{seconds}: {n} facts denied ({denied[0].detail or 'privilege is missing'})",
                         f"部分应答{seconds}：{n} 个事实被拒绝（{denied[0].detail or '缺少权限'}）"),
                    more,
                ))  # fmt: skip
            else:
                n = len({o.fact for o in r.observations if o.status.answered})
                out.append(Row(r.probe, True, Text(f"{n} facts{seconds}", f"{n} 个事实{seconds}")))
            continue
        lost = _rules_lost(spec, answered, rules)
        missing = r.status in (Status.UNSUPPORTED, Status.NOT_APPLICABLE)
        out.append(Row(
            r.probe, None if missing else False, Text(r.detail or str(r.status), r.detail or str(r.status)),
            _remedy(r, spec, more), lost,
        ))  # fmt: skip
    return out


def reach(results: Sequence[ProbeResult], specs: Sequence[ProbeSpec], rules: Sequence[Rule]) -> Reach:
    """The rules that the probes can answer between them, and those of them that nothing on this machine answers."""
    known = {spec.name: spec for spec in specs}
    seen = [o for r in results for o in r.observations if o.status.answered]
    told = {vocabulary().told(o).name for o in seen}
    # A log that was read answers for the lines that are not in it.
    told |= {name for r in results if r.status is Status.OK for name in known[r.probe].provides if _is_event(name)}
    every = {name for spec in specs for name in spec.provides}
    able = [rule for rule in rules if _answerable(rule.when, every)]
    lost = sum(1 for rule in able if not _answerable(rule.when, told))
    counts = [o.value for o in seen if o.fact == "node.pci.gpu_count"]
    return Reach(len(able), lost, bool(counts) and not any(counts))


def _is_event(name: str) -> bool:
    spec = vocabulary().get(name)
    return spec is not None and spec.kind is Kind.EVENT


def _answerable(condition: Condition, told: Collection[str]) -> bool:
    """Whether the condition can come true where only the facts `told` are known, or what is computed from them."""
    if isinstance(condition, All):
        return all(_answerable(child, told) for child in condition.children)
    if isinstance(condition, Any_):
        return any(_answerable(child, told) for child in condition.children)
    return all(_tells(name, told) for name in facts_of(condition))


def _tells(name: str, told: Collection[str]) -> bool:
    spec = vocabulary().get(name)
    return name in told or any(_tells(source, told) for source in (spec.derived_from if spec else ()))


def _rules_lost(spec: ProbeSpec, answered: Iterable[str], rules: Sequence[Rule]) -> int:
    """Rules that need a fact which only this probe would have given."""
    lost = set(spec.provides) - set(answered)
    return sum(1 for rule in rules if facts_of(rule.when) & lost)


def _remedy(result: ProbeResult, spec: ProbeSpec, more: Text) -> Text:
    if result.status is Status.DENIED:
        return more
    if result.status is Status.TIMEOUT:
        return Text(
            "gpudiag explain rule driver-unresponsive; then look at the kernel log",
            "gpudiag explain rule driver-unresponsive，然后查看内核日志",
        )
    if result.status is Status.UNSUPPORTED:
        hints = [INSTALL[b] for b in spec.needs.binaries if INSTALL.get(b)]
        return Text(hints[0], hints[0]) if hints else NO_TEXT
    return NO_TEXT
