"""The machines of an inventory: names, aliases and groups, and what each of them means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from assistant.nodes import folded
from assistant.session.inventory import LONGEST, Index, Known, nearest
from assistant.session.nodeset import expand, is_set
from knowledge.errors import UnknownNameError, UsageError
from knowledge.record import dataclass
from knowledge.text import excerpt

if TYPE_CHECKING:
    from probes.remote.reach import Reach

SSH, SLURM, KUBERNETES = "ssh", "slurm", "kubernetes"
VIAS = (SSH, SLURM, KUBERNETES)
EVERY = frozenset(VIAS)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a host: what its value is, and which ways to a machine it is about."""

    kind: str  # word, path, number, seconds, flag
    vias: frozenset[str] = EVERY
    least: float = 0.0
    most: float = 0.0


_ONLY_SSH, _ONLY_SLURM, _ONLY_KUBERNETES = frozenset({SSH}), frozenset({SLURM}), frozenset({KUBERNETES})
# How a machine is reached: the fields of `probes.remote.reach.Reach`.
REACH: Mapping[str, Key] = {
    "address": Key("word"),
    "user": Key("word", _ONLY_SSH),
    "port": Key("number", _ONLY_SSH, 1, 65_535),
    "identity": Key("path", _ONLY_SSH),
    "ssh_config": Key("path", _ONLY_SSH),
    "jump": Key("word", _ONLY_SSH),
    "partition": Key("word", _ONLY_SLURM),
    "account": Key("word", _ONLY_SLURM),
    "job": Key("word", _ONLY_SLURM),
    "namespace": Key("word", _ONLY_KUBERNETES),
    "pod": Key("word", _ONLY_KUBERNETES),
    "container": Key("word", _ONLY_KUBERNETES),
    "context": Key("word", _ONLY_KUBERNETES),
    "selector": Key("word", _ONLY_KUBERNETES),
    "root": Key("word"),
    "python": Key("word"),
    "connect_timeout": Key("seconds", EVERY, 0.1, 600),
    "sudo": Key("flag"),
}


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the inventory."""

    name: str
    via: str = SSH
    how: Mapping[str, Any] = field(default_factory=dict)  # the keys of `REACH` that are given and that `via` takes
    aliases: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: int | None = None  # how many it should have
    place: str = ""  # file and line

    @property
    def reach(self) -> Reach:
        """How it is reached; a pod is called as the machine unless something says which it is."""
        from probes.remote.reach import Reach, Via

        how = dict(self.how)
        if self.via == KUBERNETES and not {"pod", "selector"} & how.keys():
            how["pod"] = self.name
        return Reach(self.name, Via(self.via), **how)

    def by(self, via: str) -> Node:
        """The same machine, reached in another way: what only the first one takes is left out."""
        how = {key: value for key, value in self.how.items() if via in REACH[key].vias}
        return replace(self, via=via, how=how)


@dataclass(frozen=True)
class Hosts:
    """What an inventory file says."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # the names of their machines, groups within resolved
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of machines that are named with --via alone
    file: str = ""  # where it stands; empty when there is none

    @cached_property
    def called(self) -> Mapping[str, str]:
        """Every name and alias, and the machine that it means."""
        aliases = {alias: node.name for node in self.nodes.values() for alias in node.aliases}
        return aliases | {name: name for name in self.nodes}

    @cached_property
    def _index(self) -> Index:
        return Index(self.called)

    def find(self, said: str) -> Node:
        """The machine that `said` means: a name or an alias, as it is, in other case, short for long, padded otherwise.

        UnknownNameError with the nearest names; UsageError for what means several machines.
        """
        if is_set(said):
            said = _only(said)
        group = said.removeprefix("@")
        if group in self.groups and (said.startswith("@") or said not in self.called):
            members = self.groups[group]
            raise UsageError(
                f"{group} is a group of {len(members)} machines ({excerpt(folded(members), 100)}), and one is looked at at a time",
                hint=f"name one of them: {', '.join(members[:3])}",
            )
        found = self._index.find(excerpt(said, LONGEST))
        fits = (found.name,) if isinstance(found, Known) else found.suggestions if found else ()
        meant = {self.called[name] for name in fits}
        if len(meant) == 1:
            return self.nodes[meant.pop()]
        raise unknown(said, (*fits, *nearest(said, tuple(self.called))), self.file)

    def __bool__(self) -> bool:
        return bool(self.nodes)


def unknown(said: str, near: tuple[str, ...], file: str) -> UnknownNameError:
    """The error for a machine that the inventory does not know."""
    error = UnknownNameError("machine", excerpt(said, 80), (), kind_zh="机器")
    where = file or "inventory.toml beside config.toml"
    meant = f"did you mean {', '.join(dict.fromkeys(near))}?" if near else f"name it in {where}"
    if near:
        meant_zh = f"是否指 {', '.join(dict.fromkeys(near))}？"
    else:
        meant_zh = f"请在 {file or '配置文件旁的 inventory.toml'} 中写明"
    error.hint_zh = f"{meant_zh}（gpudiag config hosts 列出全部；--via ssh 可用 ssh 认识的名称）"
    error.hint = f"{meant} (gpudiag config hosts lists them; --via ssh takes a name that ssh knows)"
    return error


def _only(said: str) -> str:
    """The one machine of a set. UsageError when it names several, or none."""
    try:
        members = expand(said)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if len(members) > 1:
        raise UsageError(
            f"{excerpt(said, 80)} names {len(members)} machines, and one is looked at at a time",
            hint=f"name one of them: {', '.join(members[:3])}",
        )
    return members[0]
