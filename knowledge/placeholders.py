"""What a command of a runbook leaves open, and how it is filled in: each value stays the one word that it stands for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from knowledge.language import Text
from knowledge.lazy import lazy
from knowledge.record import dataclass


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
_PLACEHOLDER = lazy(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
_NUMBER = lazy(r"0|[1-9][0-9]{0,9}")


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
