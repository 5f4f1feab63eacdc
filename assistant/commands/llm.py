"""``gpudiag llm``: what would be sent to the language model, what came back, and whether it may be shown; how much was used."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from assistant.output import Progress, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assistant.narrate.narrator import Narrated, Narrator, Withheld
    from assistant.narrate.pages import Look
    from assistant.narrate.reasons import NarrationError
    from assistant.reply import Reply

NAME = "llm"
HELP = "the language model that may reword answers: test, status"
LOADING = 90.0  # seconds that litellm may take to load: here somebody waits for just that
SAMPLE = "off-the-bus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``llm [status] | test``."""
    parser.set_defaults(action="status")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions (default: status)")
    test = actions.add_parser("test", help="reword one answer: exactly what is sent, what came back, what may be shown")
    add = test.add_argument
    add("--demo", default="", metavar="NAME", help=f"the answer to this recorded incident (default: {SAMPLE})")
    add("--log", nargs="+", action="extend", default=[], metavar="FILE", help="the answer to these logs instead")
    add("--input", nargs="+", action="extend", default=[], metavar="FILE", help="the answer to any captured output")
    add("--dry-run", action="store_true", help="only show what would be sent; nothing is sent or started")
    add("--show-redaction", action="store_true", help="what stands behind each pseudonym; that table never leaves here")
    actions.add_parser("status", help="what is configured, and what was used today; nothing is sent")


def run(args: argparse.Namespace) -> int:
    """OK when the model's words may be shown, UNDECIDED when they may not, USAGE when nothing could be asked."""
    return _test(args) if args.action == "test" else _status(args)


def _status(args: argparse.Namespace) -> int:
    from assistant.config import state_folder
    from assistant.narrate import pages
    from assistant.narrate.limits import Limits
    from assistant.narrate.reasons import NarrationError
    from assistant.narrate.setup import setup
    from assistant.render.sheet import show

    output = args.settings.output
    try:
        found = setup(args.settings.llm)
        used = Limits(state_folder(args.settings), found.bounds).used()
    except NarrationError as error:
        write(show(pages.off(error, output.lang), output))
        return _code(error)
    write(show(pages.status(found, used, state_folder(args.settings), output.lang), output))
    return 0


def _test(args: argparse.Namespace) -> int:
    from assistant.exits import Exit
    from assistant.narrate import pages
    from assistant.narrate.narrator import reworded
    from assistant.narrate.reasons import NarrationError
    from assistant.narrate.setup import setup
    from assistant.render.sheet import show

    settings, output = args.settings, args.settings.output
    try:
        if not args.dry_run:
            setup(settings.llm)  # what is missing is said before a diagnosis is made
        reply = _reply(args)
        asked = reworded(reply, settings.llm)
    except NarrationError as error:
        write(show(pages.off(error, output.lang), output))
        return _code(error) or Exit.USAGE  # a test was asked for, and there is nothing to test
    look = pages.Look(settings.llm, asked, show_redaction=args.show_redaction)
    if args.dry_run:
        write(show(pages.tested(look, None, output.lang, None), output))
        return 0
    found, walls = _asked(args, reply, look)
    write(show(pages.tested(look, found, output.lang, walls), output))
    return _result(found)


def _asked(args: argparse.Namespace, reply: Reply, look: Look) -> tuple[Narrated | Withheld, Mapping[str, bool] | None]:
    """Waits for the model, as no answer ever does. What was shown as sent is what is sent: the same payload.

    With which walls stood around its process.
    """
    from assistant.narrate.narrator import Narrator
    from assistant.narrate.reasons import Reason
    from knowledge.language import Text

    bar = Progress(args.quiet)
    narrator = Narrator(args.settings, lambda _reply, _llm: look.asked)
    try:
        _load(narrator, bar, args.settings.output.lang)
        pending = narrator.begin(reply)
        if pending is None:
            from assistant.narrate.narrator import Withheld

            return Withheld(Reason.OFF, Reason.OFF.text), None
        bar(Text("the model answers", "等待模型回答").in_(args.settings.output.lang))
        return pending.result(args.settings.llm.deadline + LOADING), narrator.walls
    finally:
        bar.done()
        narrator.close()


def _load(narrator: Narrator, bar: Progress, lang: str) -> None:
    from knowledge.language import Text

    bar(Text("litellm is being loaded", "正在加载 litellm").in_(lang))
    narrator.wait(LOADING)


def _reply(args: argparse.Namespace) -> Reply:
    """The answer that is reworded: the whole diagnosis of a recorded incident, or of files."""
    from assistant.reply import Reply
    from knowledge.errors import UsageError

    if args.demo and (args.log or args.input):
        raise UsageError("--demo names a recorded incident, --log and --input your own files: give one or the other")
    lang = args.settings.output.lang
    return Reply(lang, "", diagnosis=_diagnosed(args))


def _diagnosed(args: argparse.Namespace) -> Any:
    if not (args.log or args.input):
        from assistant.commands import demo

        name = args.demo or SAMPLE
        return demo.diagnosed(name, demo.load(name), args.settings)
    from assistant.arguments import command_parser
    from assistant.cli import load
    from assistant.commands import check

    words = [
        word for option in ("log", "input") if getattr(args, option) for word in (f"--{option}", *getattr(args, option))
    ]
    given = command_parser(load(check.NAME)).parse_args([*words, "--quiet"])
    given.settings = args.settings
    return check.diagnosed(given).diagnosis


def _code(error: NarrationError | Withheld) -> int:
    """Switched off is a state; what is not complete is asked wrongly."""
    from assistant.exits import Exit
    from assistant.narrate.reasons import Reason

    if error.reason is Reason.OFF:
        return Exit.OK
    wrong = (Reason.NOT_CONFIGURED, Reason.HOST, Reason.NOT_INSTALLED, Reason.UNSAFE)
    return Exit.USAGE if error.reason in wrong else Exit.UNDECIDED


def _result(found: Narrated | Withheld) -> int:
    from assistant.exits import Exit
    from assistant.narrate.narrator import Withheld

    return _code(found) if isinstance(found, Withheld) else Exit.OK
