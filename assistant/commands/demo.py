"""``gpudiag demo``: a recorded incident, diagnosed on this machine without a GPU."""

from __future__ import annotations

import argparse
import json
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
    """``demo [NAME] [--list] [--extract DIR]``."""
    parser.add_argument(
        "name", nargs="?", default=FIRST, metavar="NAME", help=f"which one (default: {FIRST}); --list names them all"
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="name them all; in JSON with the arguments of each")
    instead.add_argument(
        "--extract", metavar="DIR", type=Path, help="lay its files out in DIR, which is made, instead of answering"
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
    if args.list:
        return _list(args)
    story = load(args.name)
    if args.extract:
        return _extract(args, story)
    say(_told(args.name, story, output.lang), args.quiet)
    diagnosis = diagnosed(args.name, story, args.settings)
    write(show(diagnosis, output, tells, verbose=args.verbose))
    if output.format == "text":
        many = len(names()) - 1
        more = {"zh": f"另有 {many} 个事件：gpudiag demo --list"}.get(
            output.lang, f"{many} more incidents: gpudiag demo --list"
        )
        say(f"\n{more}", args.quiet)
    return 0


def load(name: str) -> dict[str, Any]:
    """The story of one incident. UnknownNameError with the nearest names."""
    from knowledge import yamlfile
    from knowledge.errors import UnknownNameError

    if name not in names():
        error = UnknownNameError("demo", name, names())
        error.hint = error.hint or "gpudiag demo --list names them all"
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
    return "\n".join([*wrap(text, terminal_width()), "", *_shell(FOLDER / name, story), ""])


def _shell(folder: Path, story: dict[str, Any]) -> list[str]:
    """The two lines that ask the same of the files in `folder`."""
    here = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return [f"$ cd {shlex.quote(str(here))}", f"$ {command(story)}"]


def _extract(args: argparse.Namespace, story: dict[str, Any]) -> int:
    """Copy what the incident is asked with, and print how. InputError where the folder holds something, or cannot be written."""
    from shutil import copy, copytree

    from knowledge.errors import InputError

    target: Path = args.extract
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            message, hint = f"{target} is there already, and not empty", "name a folder that is not there yet"
            raise InputError(message, hint=hint, zh=f"{target} 已存在且非空", hint_zh="请指定一个尚不存在的目录")
        target.mkdir(parents=True, exist_ok=True)
        for part in files(args.name):
            source = FOLDER / args.name / part
            (copytree if source.is_dir() else copy)(source, target / part)
    except OSError as error:
        message = f"{error.filename or target} cannot be written: {error.strerror}"
        raise InputError(message, zh=f"无法写入 {error.filename or target}：{error.strerror}") from error
    if args.settings.output.format == "json":
        write(
            json.dumps(
                {"demo": args.name, "folder": str(target), "arguments": ["check", *_words(story)]}, ensure_ascii=False
            )
        )
    else:
        write("\n".join(_shell(target, story)))
    return 0


def files(name: str) -> list[str]:
    """What lies in the folder of an incident beside its story: files, and the folder of a bundle."""
    return sorted(p.name for p in (FOLDER / name).iterdir() if p.name != "story.yaml")


def _list(args: argparse.Namespace) -> int:
    from assistant.render.sheet import Fields, Sheet, show
    from knowledge.language import Text

    lang = args.settings.output.lang
    stories = {n: load(n) for n in names()}
    titles = {n: Text.of(story["title"]).in_(lang) for n, story in stories.items()}
    data = {n: {"title": titles[n], "arguments": ["check", *_words(story)]} for n, story in stories.items()}
    title = Text("Recorded incidents", "已记录的事件").in_(lang)
    write(show(Sheet(title, (Fields(tuple(titles.items())),), {"demos": data}), args.settings.output))
    return 0
