"""The inventory file read: TOML, with every fault of it at once, each with its line and the nearest allowed word.

::

    [defaults]                      # of every machine
    user = "ops"

    [hosts.gpu-12]
    address = "10.0.3.12"           # over ssh, unless `via` says slurm or kubernetes
    aliases = ["dgx3"]
    gpus = 8
    labels = {rack = "3"}

    [hosts."gpu[001-064]"]          # each of a set; a machine's own table is laid over those of its sets
    via = "slurm"

    [groups]
    training = ["gpu[001-032]", "@spare"]
    spare = ["gpu-12"]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from assistant.inventory.document import Document, text_of
from assistant.inventory.groups import resolved
from assistant.inventory.model import REACH, SSH, Hosts, Node
from assistant.inventory.places import place
from assistant.inventory.words import NAME, NO_NAME, THIS, values
from assistant.session.inventory import HERE
from assistant.session.nodeset import expand
from knowledge.errors import nearest_hint
from knowledge.text import excerpt

MOST = 20_000  # machines
SECTIONS = ("defaults", "hosts", "groups")
_DEFAULTS = {*REACH, "via", "gpus", "labels"}
_ABOUT = {*_DEFAULTS, "aliases"}
Given: TypeAlias = dict[str, tuple[Any, str]]  # the values of a machine, each with the table that gave it


def read(path: Path) -> Hosts:
    """The inventory at `path`. InputError when it cannot be read, FaultsError with all that is wrong in it."""
    return parse(text_of(path, "inventory"), str(path))


def parse(text: str, file: str) -> Hosts:
    """The inventory that `text` is. FaultsError with all that is wrong in it; `file` is where it says that this stands."""
    reading = _Reading(text, file)
    hosts = reading.hosts(reading.data)
    reading.settle()
    return hosts


class _Reading(Document):
    """One file: what was found in it, and what is wrong with it."""

    def hosts(self, data: Mapping[str, Any]) -> Hosts:
        """Everything that the file says."""
        for key in data:
            if key not in SECTIONS:
                self.fault((key,), f"unknown key {excerpt(key, 60)!r}", nearest_hint(key, SECTIONS))
        defaults, hosts, groups = (self.table(data.get(s, {}), (s,)) for s in SECTIONS)
        usual = values(defaults, ("defaults",), _DEFAULTS, self.file, self.fault)
        nodes = self._nodes(hosts, usual)
        return Hosts(nodes, resolved(groups, self._called(nodes), self.fault), usual, self.file)

    def _nodes(self, tables: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Node]:
        """Every machine, in the order of the file."""
        named = {said: self._names(said) for said in tables}
        given: dict[str, Given] = {}
        for names in named.values():
            given.update({name: {} for name in names if len(given) < MOST})
        if sum(map(len, named.values())) > MOST:
            self.fault(("hosts",), f"more than {MOST} machines")
        for said in sorted(named, key=lambda s: named[s] == (s,)):  # sets first; a machine's own table over them
            key = ("hosts", said)
            table = values(self.table(tables[said], key), key, _ABOUT, self.file, self.fault)
            if "aliases" in table and len(named[said]) > 1:
                self.fault((*key, "aliases"), "an alias is another name of one machine, and these are several")
                del table["aliases"]
            for name in named[said]:
                _lay(given.get(name, {}), table, said, usual)
        own = {name: said for said, names in named.items() for name in names}
        own.update({said: said for said, names in named.items() if names == (said,)})
        return {name: self._node(name, own[name], values, usual) for name, values in given.items()}

    def _names(self, said: str) -> tuple[str, ...]:
        """The machines that a key of the section names; none, and a fault, when it is no name."""
        key = ("hosts", said)
        try:
            names = expand(said)
        except ValueError as error:
            self.fault(key, str(error))
            return ()
        for name in names:
            if not NAME.fullmatch(name) or (name != said and "[" not in said and "," not in said):
                self.fault(key, f"{excerpt(said, 60)!r} {NO_NAME}")
                return ()
            if name.casefold() in HERE:
                self.fault(key, f"{name!r} means the machine that asks, whatever stands here")
                return ()
        return names

    def _node(self, name: str, said: str, given: Given, usual: Mapping[str, Any]) -> Node:
        via = given["via"][0] if "via" in given else usual.get("via", SSH)
        how = {k: v for k, v in usual.items() if k in REACH and via in REACH[k].vias}
        for k, (value, table) in given.items():
            if k in REACH and via not in REACH[k].vias:
                which = " and ".join(sorted(REACH[k].vias))
                self.fault(("hosts", table, k), f"{k} is about {which}, and this is reached through {via}")
            elif k in REACH:
                how[k] = value.replace(THIS, name) if isinstance(value, str) else value
        about = {k: v for k, (v, _) in given.items()}
        line, _ = place(self.places, ("hosts", said))
        node = Node(
            name, via, how, tuple(about.get("aliases", ())), {**usual.get("labels", {}), **about.get("labels", {})},
            about.get("gpus", usual.get("gpus")), f"{self.file}:{line}",
        )  # fmt: skip
        if not self.faults:
            try:
                _ = node.reach
            except ValueError as error:
                self.fault(("hosts", said), str(error))
        return node

    def _called(self, nodes: Mapping[str, Node]) -> dict[str, str]:
        """Every name and alias, and the machine that it means."""
        called = {name: name for name in nodes}
        for node in nodes.values():
            for alias in node.aliases:
                key = ("hosts", node.name, "aliases")
                if not NAME.fullmatch(alias):
                    self.fault(key, f"{excerpt(alias, 60)!r} {NO_NAME}")
                elif alias.casefold() in HERE:
                    self.fault(key, f"{alias!r} means the machine that asks, whatever stands here")
                elif called.setdefault(alias, node.name) != node.name:
                    self.fault(key, f"{alias!r} is a name of {called[alias]} already")
        return called


def _lay(given: Given, table: Mapping[str, Any], said: str, usual: Mapping[str, Any]) -> None:
    """`table` over what other tables gave; what does not fit another way to the machine is dropped with that way."""
    before = given["via"][0] if "via" in given else usual.get("via", SSH)
    via = table.get("via", before)
    if via != before:
        for key in [k for k in given if k in REACH and via not in REACH[k].vias]:
            del given[key]
    for key, value in table.items():
        if key == "labels" and "labels" in given:
            given[key] = ({**given[key][0], **value}, said)
        else:
            given[key] = (value, said)
