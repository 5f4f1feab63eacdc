"""Conversations recorded, and held again as a test."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.commands._talk import Talk, plain_output, shown
from assistant.output import say, write
from knowledge.language import Text

_TOGETHER = 100  # machines of one word: what `expand` reads has an end

if TYPE_CHECKING:
    from assistant.inventory.model import Hosts
    from assistant.session.transcript import Recorder, Said, Transcript


# --- the machines that could be looked at --------------------------------------------------


def names_of(others: Hosts) -> str:
    """Machines, their other names, and how many GPUs each should have, in one line: ``gpu[001-064]*8 gpu-12=dgx3,rack3*4``."""
    from assistant.nodes import folded

    alike: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for n in others.nodes.values():
        alike.setdefault((n.aliases, "" if n.gpus is None else f"*{n.gpus}"), []).append(n.name)
    return " ".join(
        f"{folded(names[i : i + _TOGETHER])}{'=' if aliases else ''}{','.join(aliases)}{gpus}"
        for (aliases, gpus), names in alike.items()
        for i in range(0, len(names), _TOGETHER)
    )


def named_in(line: str) -> Hosts:
    """The machines of such a line: what a sentence means hangs on which names there are."""
    from assistant.inventory.model import Hosts, Node
    from assistant.session.nodeset import expand

    nodes: dict[str, Node] = {}
    try:
        for word in line.split():
            rest, _, gpus = word.partition("*")
            name, _, aliases = rest.partition("=")
            more, count = tuple(filter(None, aliases.split(","))), int(gpus) if gpus else None
            nodes.update({n: Node(n, aliases=more, gpus=count) for n in expand(name)})
    except ValueError:
        return Hosts()
    return Hosts(nodes)


# --- recording ----------------------------------------------------------------------------


def begin(args: argparse.Namespace) -> tuple[Talk, Recorder]:
    """A new conversation that depends on nothing but what it is about (no memory, no history), and where it is written."""
    from assistant.config import History
    from assistant.session.transcript import Recorder

    if Path(args.record).absolute().parent != Path.cwd():
        _make_absolute(args)
    args.settings = args.settings._replace(history=History("off"))
    args.no_history = True
    talk = Talk(args, None, None)
    return talk, Recorder(args.record, _about(args, talk))


def _make_absolute(args: argparse.Namespace) -> None:
    """Paths in a transcript count from its folder; answers name files as they were given."""
    for name in ("log", "input", "rules"):
        setattr(args, name, [f if f == "-" else str(Path(f).absolute()) for f in getattr(args, name)])
    for name in ("bundle", "site"):
        if getattr(args, name):
            setattr(args, name, str(Path(getattr(args, name)).absolute()))


def _about(args: argparse.Namespace, here: Talk) -> list[tuple[str, str]]:
    """The head of the transcript: everything that the answers depend on beside the sentences."""
    from assistant.render.cells import terminal_width

    single = (("bundle", args.bundle), ("host", args.host), ("site", args.site))
    absent = " ".join(sorted(here.eyes.absent())) if here.origin.live else ""
    nodes = names_of(here.eyes.others) if here.origin.live and here.eyes.others else ""
    return [
        ("lang", args.settings.output.lang),
        ("here", here.talk.session.inventory.here),
        ("columns", str(terminal_width())),
        *((name, value) for name, value in (*single, ("absent", absent), ("nodes", nodes)) if value),
        *((name, value) for name in ("log", "input", "rules") for value in getattr(args, name)),
    ]


def turn_of(here: Talk, text: str, answer: str, recorder: Recorder) -> Said:
    """The turn for the transcript; what the machine told in it becomes bundles beside it."""
    from assistant.commands.collect import save
    from assistant.session.transcript import Said

    names = []
    for look in here.eyes.looks:
        recorder.looks += 1
        name = f"{recorder.path.stem}-look{recorder.looks}.tar.gz"
        save(look, str(recorder.path.with_name(name)))
        names.append(name)
    here.eyes.looks.clear()
    return Said(text, answer, tuple(names))


# --- replaying ----------------------------------------------------------------------------


def replay(args: argparse.Namespace) -> int:
    """Exit code 0: all answers are the same; 1: some differ, and the difference is printed."""
    from assistant.session import transcript
    from assistant.session.replay import RecordedEyes, replayed

    recorded = transcript.read(args.replay)
    _refuse_more(args)
    with chdir(Path(args.replay).absolute().parent):
        _adopt(args, recorded)
        from assistant.commands.ask import origin_of
        from assistant.commands.rules import ruleset

        others = named_in(recorded.one("nodes"))
        eyes = RecordedEyes(args.settings, ruleset(args, args.settings), history=False, others=others)
        now = replayed(recorded, eyes, origin_of(args, eyes), lambda a: shown(args, a, plain_output(args)))
    differences = transcript.diff(recorded, now)
    write("".join(f"{line}\n" for line in differences))
    wrong = sum(not transcript.same(a, b) for a, b in zip(recorded.turns, now.turns, strict=True))
    total = len(recorded.turns)
    lang = args.settings.output.lang
    said = Text(f"{args.replay}: {total} answers, {wrong} different", f"{args.replay}：{total} 个回答，{wrong} 个不同")
    say(f"gpudiag: {said.in_(lang)}", args.quiet)
    return 1 if wrong else 0


def _refuse_more(args: argparse.Namespace) -> None:
    from knowledge.errors import UsageError

    given = [
        f"--{n}"
        for n in ("bundle", "log", "input", "host", "via", "inventory", "site", "rules", "record", "thread", "new")
        if getattr(args, n)
    ]
    if given:
        raise UsageError(
            f"{' and '.join(given)} cannot stand beside --replay: the file says what the conversation is about",
            hint="leave it out, or change the head of the file",
        )


def _adopt(args: argparse.Namespace, recorded: Transcript) -> None:
    """Take over what the conversation depended on. InputError or FaultsError when it is not there."""
    import os

    from assistant.config import History
    from knowledge.errors import Fault, FaultsError, InputError

    lang, columns = recorded.one("lang") or "en", recorded.one("columns") or "100"
    faults = [(lang not in ("en", "zh"), f"lang is {lang!r}, not en or zh"),
              (not columns.isascii() or not columns.isdigit() or len(columns) > 4, f"columns is {columns!r}, not a number")]  # fmt: skip
    if any(wrong for wrong, _ in faults):
        raise FaultsError([Fault(recorded.file, 1, 1, message) for wrong, message in faults if wrong])
    os.environ["COLUMNS"] = columns
    args.bundle, args.host, args.site = recorded.one("bundle"), recorded.one("host"), recorded.one("site") or None
    args.log, args.input, args.rules = (list(recorded.all(k)) for k in ("log", "input", "rules"))
    looks: Sequence[str] = [name for said in recorded.turns for name in said.looks]
    for name in (*filter(None, (args.bundle, args.site)), *args.log, *args.input, *args.rules, *looks):
        if not Path(name).exists():
            raise InputError(
                f"{recorded.file}: {name} is not there", hint="paths count from the folder of the recorded conversation"
            )
    machine = args.settings.machine._replace(name=recorded.one("here") or args.settings.machine.name)
    output = args.settings.output._replace(lang=lang)
    args.settings = args.settings._replace(machine=machine, output=output, history=History("off"))
