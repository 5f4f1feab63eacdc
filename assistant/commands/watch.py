"""``gpudiag watch``: keep checking this machine, or another one; remember, alert, serve metrics."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.commands.check import add_probing, wish
from assistant.inventory.target import add_target
from assistant.output import say, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assistant.inventory.model import Node
    from assistant.watch.loop import Plan, Watcher
    from assistant.watch.stacks import Sampler

NAME = "watch"
HELP = "keep checking this machine, or another one: alerts with a memory, metrics, webhooks"
PORT = 9836
GAP = 2.0  # seconds between two checks at least, however much the kernel says
FILES = {"systemd": "gpudiag-watch.service", "kubernetes": "daemonset.yaml", "container": "Containerfile"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How often, where to tell, and what to keep."""
    add = parser.add_argument
    add(
        "--interval",
        type=_interval,
        default=60.0,
        metavar="SECONDS",
        help="time between two checks (default: 60); a kernel message brings the next one forward",
    )
    add(
        "--listen",
        type=_address,
        metavar="HOST:PORT",
        help=f"serve /metrics, /healthz, /readyz, /alerts, /diagnosis (a usual choice: 127.0.0.1:{PORT})",
    )
    add(
        "--token-file",
        default="",
        metavar="FILE",
        help="/alerts and /diagnosis want what stands in it as a bearer token; beyond loopback they are closed without one",
    )
    add(
        "--webhook",
        action="append",
        default=[],
        metavar="URL",
        help="post alerts as JSON; Slack incoming webhooks get Slack's format (slack+https://... for others that speak it)",
    )
    add(
        "--webhook-file",
        metavar="FILE",
        help="addresses of webhooks, one a line: they are secrets, and a command line is not",
    )
    add(
        "--clear-after",
        type=_interval,
        default=600.0,
        metavar="SECONDS",
        help="how long a fault must stay away (default: 600); each return doubles it",
    )
    add("--rounds", type=_rounds, metavar="N", help="stop after N checks")
    add("--no-history", action="store_true", help="do not write to the history")
    add("--expect-gpus", type=_rounds, metavar="N", help="how many GPUs the node should have")
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add(
        "--profile",
        action="append",
        default=[],
        metavar="NAME",
        help="sample the Python stacks of the processes of this name, for days, into the history (gpudiag history flame NAME)",
    )
    add(
        "--profile-rate",
        type=_rate,
        default=1,
        metavar="HZ",
        help="samples a second of --profile (default: 1; at most 20)",
    )
    add(
        "--print",
        choices=sorted(FILES),
        dest="print_",
        help="print a unit file, a DaemonSet or a Containerfile for running this, and stop",
    )
    add_target(
        parser, host="watch this node, from here: a connection for each check, and no wait for its kernel's messages"
    )
    add_probing(parser)


def _interval(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 86_400:
        raise ValueError(text)
    return value


_interval.__name__ = "number of seconds (0.1 to 86400)"


def _rate(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 20:
        raise ValueError(text)
    return value


_rate.__name__ = "rate (1 to 20 Hz)"


def _rounds(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 10**9:
        raise ValueError(text)
    return value


_rounds.__name__ = "number"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not 0 <= int(port) <= 65_535:
        raise ValueError(text)
    return host.strip("[]") or "127.0.0.1", int(port)


_address.__name__ = "address such as 127.0.0.1:9836"


def run(args: argparse.Namespace) -> int:
    """Watch until told to stop (SIGTERM, SIGINT). The exit code is that of the newest check."""
    if args.print_:
        write((Path(__file__).parent.parent / "deploy" / FILES[args.print_]).read_text())
        return 0
    from assistant.commands.rules import ruleset
    from assistant.watch.loop import LEAVE, Watcher

    settings, rules = args.settings, ruleset(args, args.settings)
    watcher = Watcher(settings, rules, plan(args), _line(args.quiet), _emit(args))
    keeper = None
    if settings.history.url != "off" and not args.no_history:
        from assistant.machine import remembering
        from assistant.watch.keeper import Keeper

        watcher.remember = keeper = Keeper(settings, rules.rules, watcher.complain)
        watcher.again = keeper.again
        watcher.recall = lambda look: remembering(settings, look, rules.rules)
    sampler = _sampler(args, watcher)
    _listen(watcher)
    _settle()
    try:
        return watcher.run()
    finally:
        for kept in (sampler, keeper):
            if kept is not None:
                kept.close(LEAVE, lambda: not watcher.told_to_stop)


def _sampler(args: argparse.Namespace, watcher: Watcher) -> Sampler | None:
    """What samples stacks, running; None when none are wanted. UsageError when there is nowhere to keep them."""
    if not args.profile:
        return None
    if args.settings.history.url == "off" or args.no_history:
        from knowledge.errors import UsageError

        raise UsageError(
            "--profile keeps stacks in the history, which is off", hint="leave --no-history out, or set history_url"
        )
    from assistant.watch.stacks import Sampler

    sampler = Sampler(args.settings, args.profile, watcher.complain, args.profile_rate)
    sampler.start()
    return sampler


def _listen(watcher: Watcher) -> None:
    """SIGTERM and SIGINT end the watch, SIGHUP brings a check, told by a thread of their own.

    A handler runs amid whatever the main thread does, and could wait for a lock that this one holds.
    """
    import signal
    import socket
    from threading import Thread

    from assistant.ending import within

    ear, mouth = socket.socketpair()
    mouth.setblocking(False)

    def hear() -> None:
        with ear, mouth:
            while number := ear.recv(1):
                if number[0] == signal.SIGHUP:
                    watcher.wake()
                elif number[0] in (signal.SIGTERM, signal.SIGINT):
                    within()
                    watcher.stop()

    Thread(target=hear, name="signals", daemon=True).start()
    signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)


def _settle() -> None:
    """What is loaded stays: the collector of garbage need not look at it again in each round."""
    import gc

    gc.collect()
    gc.freeze()


def plan(args: argparse.Namespace) -> Plan:
    """What the options say. UsageError for an address that is none."""
    from assistant.config import state_folder
    from assistant.door import token_of
    from assistant.watch.alerts import Policy
    from assistant.watch.loop import Plan
    from assistant.watch.webhook import target

    other = _other(args)
    urls = [*args.webhook, *_listed(args.webhook_file), *os.environ.get("GPUDIAG_WEBHOOKS", "").split()]
    return Plan(
        interval=args.interval,
        wish=wish(args),
        policy=Policy(hold=args.clear_after),
        listen=args.listen,
        token=token_of(args.token_file),
        targets=tuple(target(u) for u in dict.fromkeys(urls)),
        state=state_folder(args.settings) / (f"watch-{other.name}.json" if other is not None else "watch.json"),
        rounds=args.rounds,
        expect_gpus=other.gpus if other is not None and args.expect_gpus is None else args.expect_gpus,
        gap=min(GAP, args.interval),
        other=other.reach if other is not None else None,
    )


def _other(args: argparse.Namespace) -> Node | None:
    """The other machine that is to be watched; None for this one. UsageError for what is only of this one."""
    from assistant.inventory.target import settle, target

    settle(args)
    other = target(args)
    if other is not None and args.profile:
        from knowledge.errors import UsageError

        raise UsageError(
            f"--profile samples processes of this machine, not of {other.name}", hint="leave one of them out"
        )
    return other


def _listed(path: str | None) -> list[str]:
    if not path:
        return []
    from knowledge.errors import InputError

    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _line(quiet: bool) -> Any:
    """Lines for people on stderr, with the time unless systemd's journal adds it."""
    from datetime import UTC, datetime

    stamped = "JOURNAL_STREAM" not in os.environ

    def line(text: str) -> None:
        say(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}" if stamped else text, quiet)

    return line


def _emit(args: argparse.Namespace) -> Any:
    """Changes on stdout: JSON lines with ``--format json``, else nothing: stderr has the sentence."""
    if args.settings.output.format != "json":
        return lambda _: None

    def emit(change: Mapping[str, Any]) -> None:
        write(json.dumps(change, ensure_ascii=False) + "\n")

    return emit
