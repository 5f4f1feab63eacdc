"""``gpudiag demo``: a recorded incident, diagnosed on this machine without a GPU."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.output import say, write

if TYPE_CHECKING:
    from assistant.config import Settings
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
    diagnosis = diagnosed(args.name, story, args.settings)
    write(show(diagnosis, output, tells, verbose=args.verbose))
    if output.format == "text":
        many = len(names()) - 1
        more = {"zh": f"另有 {many} 个事件：gpudiag demo list"}.get(
            output.lang, f"{many} more incidents: gpudiag demo list"
        )
        say(f"\n{more}", args.quiet)
    return 0


def load(name: str) -> dict[str, Any]:
    """The story of one incident. UnknownNameError with the nearest names."""
    from knowledge import yamlfile
    from knowledge.errors import UnknownNameError

    if name not in names():
        error = UnknownNameError("demo", name, [*names(), "list"])
        error.hint = error.hint or "gpudiag demo list names them all"
        raise error
    document = yamlfile.load(FOLDER / name / "story.yaml")
    document.raise_faults()
    story: dict[str, Any] = document.data
    return story


def command(story: dict[str, Any]) -> str:
    """The ``gpudiag check`` that does the same."""
    return shlex.join(["gpudiag", "check", *_words(story)])


def _words(story: dict[str, Any]) -> list[str]:
    words = ["--bundle", story["bundle"]] if story.get("bundle") else []
    for option in ("log", "input"):
        if story.get(option):
            words += [f"--{option}", *story[option]]
    if story.get("host"):
        words += ["--host", story["host"]]
    if story.get("expect_gpus") is not None:
        words += ["--expect-gpus", str(story["expect_gpus"])]
    return words


def diagnosed(name: str, story: dict[str, Any], settings: Settings | None = None) -> Diagnosis:
    """The diagnosis of one incident: what `command` gives in its folder, under `settings` or those that nobody changed."""
    from contextlib import chdir

    from assistant.arguments import command_parser
    from assistant.cli import load as load_command
    from assistant.commands import check
    from assistant.config import load as load_settings

    args = command_parser(load_command(check.NAME)).parse_args([*_words(story), "--quiet"])
    args.settings = load_settings({"lang": "en"}, {}, ()) if settings is None else settings
    with chdir(FOLDER / name):
        return check.diagnosed(args).diagnosis


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
