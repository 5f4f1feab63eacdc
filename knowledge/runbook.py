"""Runbooks: what to do about a finding, step by step, for people and for `assistant.actions`.

One file is ``knowledge/runbooks/<id>.md``: YAML front matter (the steps: the truth that a
machine reads) and a body with the sections ``## English`` and ``## 中文`` (half a screen
each: what you see, what it means, why these steps, common mistakes).

A command is one argument list: it is shown to people, and split with `shlex` to be run, so it
needs no shell. The rare one that does is written ``sh -c '...'`` and takes no placeholders.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from knowledge import compiled
from knowledge.errors import Fault, FaultsError, UnknownNameError
from knowledge.language import Text

FOLDER = compiled.ROOT / "runbooks"
NO_TEXT = Text("")
SECTIONS = {"en": "## English", "zh": "## 中文"}


class Risk(StrEnum):
    """What a step can cost."""

    SAFE = "safe"
    """Reads, or writes files of its own; running work does not notice."""
    DISRUPTIVE = "disruptive"
    """Running or coming work is slowed, moved, stopped from starting or interrupted; it can be put back."""
    DESTRUCTIVE = "destructive"
    """Something is lost for good: a process with its unsaved work, files, recorded counters."""


class Consent(StrEnum):
    """Who must agree before a step is run."""

    NONE = "none"
    """Nobody: only for safe steps."""
    OPERATOR = "operator"
    """Whoever runs the node."""
    OWNER = "owner"
    """Whoever owns the job or service that the step touches."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a runbook. Optional texts and commands are empty when a step has none."""

    id: str
    title: Text
    do: Text
    """What to do and why."""
    risk: Risk
    consent: Consent
    command: str = ""
    """One line with placeholders such as ``{node}``; see `fill`."""
    when: Text = NO_TEXT
    """When the step applies at all."""
    verify: Text = NO_TEXT
    """How to see that it worked."""
    verify_command: str = ""
    on_failure: str = ""
    """Where to go when it did not: a step of this runbook, or another runbook."""


@dataclass(frozen=True, slots=True)
class Runbook:
    """One problem and what to do about it."""

    id: str
    title: Text
    summary: Text
    applies: tuple[str, ...]
    """Topics: ``xid 79``, ``sxid 12028``, or the area of a rule (``pcie``)."""
    steps: tuple[Step, ...]
    references: tuple[str, ...]
    body: Text
    """The page, Markdown, without a heading of its own."""

    def step(self, name: str) -> Step:
        """The step called `name`. Raises UnknownNameError with the nearest ids."""
        for step in self.steps:
            if step.id == name:
                return step
        raise UnknownNameError(f"step of runbook {self.id}", name, (step.id for step in self.steps))


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A word that a command leaves open."""

    meaning: Text
    number: bool = False
    """Only a plain decimal number will do."""


PLACEHOLDERS: Mapping[str, Placeholder] = {
    "node": Placeholder(Text("name of the node as the scheduler knows it", "调度器中的节点名")),
    "gpu_pci": Placeholder(Text("PCI address of the GPU, such as 0000:3b:00.0", "GPU 的 PCI 地址，如 0000:3b:00.0")),
    "gpu_index": Placeholder(Text("index of the GPU in nvidia-smi", "GPU 在 nvidia-smi 中的序号"), number=True),
    "pid": Placeholder(Text("process id on the node", "节点上的进程号"), number=True),
    "job": Placeholder(Text("job id of the scheduler", "调度器的作业号")),
    "namespace": Placeholder(Text("Kubernetes namespace", "Kubernetes 命名空间")),
    "pod": Placeholder(Text("Kubernetes pod", "Kubernetes Pod 名")),
    "container": Placeholder(Text("container name or id", "容器名或 ID")),
    "ib_device": Placeholder(Text("RDMA device, such as mlx5_0", "RDMA 设备，如 mlx5_0")),
    "ib_port": Placeholder(Text("port of the RDMA device, usually 1", "RDMA 设备的端口号，通常为 1"), number=True),
    "watts": Placeholder(Text("power limit in watts", "功率上限（瓦）"), number=True),
    "mig_profile": Placeholder(Text("MIG profile id or name, such as 1g.10gb", "MIG 规格，如 1g.10gb")),
    "bmc": Placeholder(Text("address of the node's management controller", "节点 BMC 地址")),
    "bmc_user": Placeholder(Text("user name on the management controller", "BMC 用户名")),
    "file": Placeholder(Text("path of a file, such as a job's log", "文件路径，如作业日志")),
    "mount": Placeholder(Text("mount point of the file system", "文件系统的挂载点")),
    "unit": Placeholder(
        Text("unit of the service manager, such as kubelet.service", "服务管理器的单元，如 kubelet.service")
    ),
}
_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")


def placeholders(command: str) -> tuple[str, ...]:
    """Names that `command` leaves open, in order, each once."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(command)))


def fill(command: str, values: Mapping[str, str | int]) -> str:
    """`command` with each placeholder replaced by its value, quoted for a shell.

    A value that is missing or unusable leaves its placeholder visible: empty, with characters
    that do not print, starting with ``-`` (it would be read as an option), or no positive
    number where only a number makes sense (``kill 0`` and ``kill -1`` reach far more than a process).
    """

    def one(match: re.Match[str]) -> str:
        name = match[1]
        value = str(values.get(name, ""))
        return shlex.quote(value) if _usable(name, value) else match[0]

    return _PLACEHOLDER.sub(one, command)


def ready(command: str, values: Mapping[str, str | int]) -> str:
    """A command with what is known filled in; what is not stands in capitals, as in a manual: ``ibstat IB_DEVICE``."""
    return _PLACEHOLDER.sub(lambda m: m[1].upper() if m[1] in PLACEHOLDERS else m[0], fill(command, values))


def _usable(name: str, value: str) -> bool:
    """Whether `value` may stand for the placeholder `name` in a command."""
    if not value or value.startswith("-") or not value.isprintable():
        return False
    placeholder = PLACEHOLDERS.get(name)
    if placeholder is None or not placeholder.number:
        return True
    return _NUMBER.fullmatch(value) is not None and (name == "gpu_index" or value != "0")


def runbook(name: str) -> Runbook:
    """The runbook called `name`. Raises UnknownNameError with the nearest ids."""
    table = _table()
    if name not in table:
        raise UnknownNameError("runbook", name, table)
    return table[name]


def all_runbooks() -> tuple[Runbook, ...]:
    """Every shipped runbook, by id."""
    return tuple(_table().values())


def about(topic: str) -> tuple[Runbook, ...]:
    """Runbooks whose `applies` holds `topic` (``xid 79``, ``pcie``), by id."""
    return tuple(found for found in all_runbooks() if topic in found.applies)


def build_all() -> list[dict[str, Any]]:
    """All shipped runbooks as plain data (the wheel's ``_compiled/runbooks.json``).

    Raises FaultsError with every fault of every file.
    """
    from knowledge.schema import runbook as schema

    entries, faults = schema.read_folder(FOLDER)
    if faults:
        raise FaultsError(faults)
    return entries


def lint(folder: Path = FOLDER) -> list[Fault]:
    """All faults of the runbooks in `folder`, by place. A site's runbook may lead on to a shipped one."""
    from knowledge.schema import runbook as schema

    shipped = (path.stem for path in FOLDER.glob("*.md"))
    return sorted(schema.read_folder(folder, elsewhere=shipped)[1])


@lru_cache(maxsize=1)
def _table() -> dict[str, Runbook]:
    shipped = compiled.SHIPPED / "runbooks.json"
    if shipped.is_file():
        entries = json.loads(shipped.read_bytes())
    else:
        code = [Path(__file__), compiled.ROOT / "schema" / "runbook.py"]
        entries = compiled.cached("runbooks", [*sorted(FOLDER.glob("*.md")), *code], build_all)
    return {entry["id"]: _runbook(entry) for entry in sorted(entries, key=lambda entry: str(entry["id"]))}


def _runbook(data: Mapping[str, Any]) -> Runbook:
    return Runbook(
        id=data["id"],
        title=Text.of(data["title"]),
        summary=Text.of(data["summary"]),
        applies=tuple(data["applies"]),
        steps=tuple(_step(step) for step in data["steps"]),
        references=tuple(data["references"]),
        body=Text.of(data["body"]),
    )


def _step(data: Mapping[str, Any]) -> Step:
    return Step(
        id=data["id"],
        title=Text.of(data["title"]),
        do=Text.of(data["do"]),
        risk=Risk(data["risk"]),
        consent=Consent(data["consent"]),
        command=data.get("command") or "",
        when=Text.of(data.get("when")),
        verify=Text.of(data.get("verify")),
        verify_command=data.get("verify_command") or "",
        on_failure=data.get("on_failure") or "",
    )
