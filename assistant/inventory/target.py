"""The one machine that a command line means: ``--host NAME``, ``--via``, ``--inventory FILE``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assistant.config import Settings
    from assistant.inventory.model import Hosts, Node
    from knowledge.observation import Observation

VIAS = ("ssh", "slurm", "kubernetes")  # as in `model`, which a command that looks at no other machine does not load


def add_target(parser: argparse.ArgumentParser, *, host: str = "") -> None:
    """The options; `host` is the help of ``--host``, where it means nothing else yet."""
    group = parser.add_argument_group("looking at another machine")
    add = group.add_argument
    if host:
        names(add("--host", default="", metavar="NAME", help=host))
    add(
        "--via",
        choices=VIAS,
        help="how --host is reached, when no inventory says so: NAME is then a name that ssh, Slurm or kubectl knows",
    )
    add("--inventory", default="", metavar="FILE", help="file of the machines that can be looked at from here")


def names(action: argparse.Action) -> None:
    """Tab completes an option with the names of machines."""
    action.complete = COMPLETE  # type: ignore[attr-defined]  # what shtab looks for


# Shell functions that complete the names of machines: names are letters, digits, dots, dashes and underscores, nothing else.
COMPLETE: Mapping[str, str] = {"bash": "_gpudiag_machines", "zsh": "_gpudiag_machines"}


def settle(args: argparse.Namespace, *, live: bool = True) -> None:
    """``--inventory`` counts as the setting of that name does. UsageError for options that make no sense together.

    `live`: whether a machine is looked at, rather than files.
    """
    from knowledge.errors import UsageError

    if args.inventory:
        args.settings = args.settings._replace(inventory=Path(args.inventory).expanduser())
    if args.via and not args.host:
        raise UsageError(f"--via {args.via} says how --host NAME is reached, and none was given")
    if args.via and not live:
        raise UsageError(
            f"--via {args.via} says how another machine is reached, but files were given",
            hint="leave out the files to look at that machine",
        )


def others(args: argparse.Namespace) -> Hosts:
    """The machines that can be looked at: those of the inventory, and the one that the options name."""
    from assistant.inventory import load

    hosts = load(args.settings)
    if not args.host or not args.via:
        return hosts
    node = _by_way(args.host, args.via, hosts)
    return replace(hosts, nodes={**hosts.nodes, node.name: node})


def reachable(args: argparse.Namespace) -> Hosts | None:
    """The machines that a conversation may look at; None when there is no inventory, and nothing names one.

    A file that is at fault costs no answer about this machine: it is told. It is an error where the options name a machine.
    """
    from assistant.inventory import path_of
    from knowledge.errors import GpudiagError

    live = not (args.bundle or args.log or args.input)
    settle(args, live=live)
    if path_of(args.settings) is None and not (args.host and live):
        return None
    try:
        return others(args)
    except GpudiagError as error:
        if (args.host and live) or args.inventory:
            raise
        from assistant.output import say

        say(f"gpudiag: {error}", args.quiet)
        return None


def target(args: argparse.Namespace, hosts: Hosts | None = None) -> Node | None:
    """The machine that ``--host`` names; None when that is this one. UnknownNameError with the nearest names."""
    if not args.host:
        return None
    found = others(args) if hosts is None else hosts
    if args.via:
        return found.nodes[_by_way(args.host, args.via, found).name]
    return named(args.host, args.settings, found)


def expected(other: Node) -> list[Observation]:
    """What the inventory says of a machine that a rule may ask about."""
    from assistant.sources import told

    return told(other.name, other.gpus, other.place)


def named(name: str, settings: Settings, hosts: Hosts) -> Node | None:
    """The machine called `name`; None for this one. UnknownNameError with the nearest names.

    The inventory comes first: a machine may well be reached from itself as it is from elsewhere.
    """
    from knowledge.errors import UnknownNameError

    try:
        return hosts.find(name)
    except UnknownNameError:
        from assistant.session.inventory import known

        if known(settings, others=hosts).is_here(name):
            return None
        raise


def _by_way(said: str, via: str, hosts: Hosts) -> Node:
    """A machine that is reached by `via`, whatever the inventory says; the rest of what that says of it counts."""
    from assistant.inventory.model import KUBERNETES, REACH, SSH, Node
    from knowledge.errors import UsageError

    known = hosts.nodes.get(hosts.called.get(said, ""))
    if known is not None:
        return known.by(via)
    how = {key: value for key, value in hosts.defaults.items() if key in REACH and via in REACH[key].vias}
    name = said
    if via == SSH and "@" in said:
        how["user"], _, name = said.rpartition("@")
    elif via == KUBERNETES and "/" in said:
        how["namespace"], _, name = said.partition("/")
    node = Node(name, via, how)
    try:
        _ = node.reach
    except ValueError as error:
        raise UsageError(
            f"--host: {error}", hint="a name as ssh, Slurm or kubectl knows it; the inventory says more"
        ) from None
    return node
