"""``gpudiag demo``: a recorded incident, diagnosed on this machine without a GPU."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.output import say, write

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis

NAME = "demo"
HELP = "replay a recorded incident; no GPU is needed"
FOLDER = Path(__file__).parent.parent / "demos"
FIRST = "off-the-bus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``demo [NAME | list]``."""
    parser.add_argument(
        "name", nargs="?", default=FIRST, metavar="NAME", help=f"which one (default: {FIRST}); list names them all"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided"
    )


def names() -> list[str]:
    """Every recorded incident."""
    return sorted(p.parent.name for p in FOLDER.glob("*/story.yaml"))


def run(args: argparse.Namespace) -> int:
    """Tell the story (on stderr), then give the answer (on stdout). The exit code is 0: the replay worked."""
    from assistant.render.diagnosis import show
    from assistant.sources import tells

    output = args.settings.output
    if args.name == "list":
        return _list(args)
    story = load(args.name)
    say(_told(args.name, story, output.lang), args.quiet)
    diagnosis = diagnosed(args.name, story, output.lang)
    write(show(diagnosis, output, tells, verbose=args.verbose))
    others = [n for n in names() if n != args.name]
    if output.format == "text" and others:
        more = {"zh": "其他事件："}.get(output.lang, "other incidents: ")
        say(f"\n{more}{', '.join(f'gpudiag demo {n}' for n in others)}", args.quiet)
    return 0


def load(name: str) -> dict[str, Any]:
    """The story of one incident. UnknownNameError with the nearest names."""
    from knowledge import yamlfile
    from knowledge.errors import UnknownNameError

    if name not in names():
        raise UnknownNameError("demo", name, [*names(), "list"])
    document = yamlfile.load(FOLDER / name / "story.yaml")
    document.raise_faults()
    story: dict[str, Any] = document.data
    return story


def command(story: dict[str, Any]) -> str:
    """The ``gpudiag check`` that does the same."""
    words = ["gpudiag", "check"]
    for option in ("log", "input"):
        if story.get(option):
            words += [f"--{option}", *story[option]]
    if story.get("host"):
        words += ["--host", story["host"]]
    if story.get("expect_gpus") is not None:
        words += ["--expect-gpus", str(story["expect_gpus"])]
    return shlex.join(words)


def diagnosed(name: str, story: dict[str, Any], lang: str = "en") -> Diagnosis:
    """The diagnosis of one incident, with the shipped rules alone."""
    from contextlib import chdir

    from assistant.diagnosis import diagnose
    from assistant.sources import read, told
    from rules.loader import load as load_rules

    host = story.get("host", "")
    with chdir(FOLDER / name):
        reading = read(story.get("log", []), story.get("input", []), host)
    notes = [f"{n.source}: {n.text.in_(lang)}" for n in reading.notes]
    facts = [*reading.observations, *told(host, story.get("expect_gpus"))]
    return diagnose(facts, load_rules(), notes=notes, sources=reading.sources)


def _told(name: str, story: dict[str, Any], lang: str) -> str:
    from assistant.render.cells import terminal_width, wrap
    from knowledge.language import Text

    text = Text.of(story["story"]).in_(lang)
    folder = FOLDER / name
    here = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return "\n".join([*wrap(text, terminal_width()), "", f"$ cd {shlex.quote(str(here))}", f"$ {command(story)}", ""])


def _list(args: argparse.Namespace) -> int:
    from assistant.render.sheet import Fields, Sheet, show
    from knowledge.language import Text

    lang = args.settings.output.lang
    titles = {n: Text.of(load(n)["title"]).in_(lang) for n in names()}
    title = Text("Recorded incidents", "已记录的事件").in_(lang)
    write(show(Sheet(title, (Fields(tuple(titles.items())),), {"demos": titles}), args.settings.output))
    return 0
