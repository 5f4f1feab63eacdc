"""The command line: finds the command, hands it its arguments, turns errors into one sentence and an exit code.

A command is one module in ``assistant/commands/`` with ``NAME``, ``HELP``,
``add_arguments(parser)`` and ``run(args) -> int``; the folder is the list. Only the chosen
module is imported. ``args.settings`` is the `assistant.config.Settings` in force.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `typing`, whose import alone would cost a tenth of `--version`
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    class Command(Protocol):
        """What a command module offers."""

        NAME: str
        HELP: str

        def add_arguments(self, parser: argparse.ArgumentParser) -> None:
            """Declare options and operands."""

        def run(self, args: object) -> int:
            """Do it; the return value is the exit code."""


_VALUE_FLAGS = ("--format", "--lang", "--color")
ALONE = "tui"  # what ``gpudiag`` without a command is, where somebody sits at a terminal


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code (`assistant.exits.Exit`)."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words in (["--version"], ["-V"]):
        from assistant import __version__

        return _version(f"gpudiag {__version__}\n")
    import atexit
    import gc

    atexit.register(gc.freeze)  # Python would look through all that is alive once more before it leaves
    # Imports, catalogues and rules make no garbage: looking for it takes a fifteenth of `ask`.
    gc.set_threshold(300_000, 20, 20)
    return _guarded(words)


def _version(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (AttributeError, OSError):  # closed, full or left by its reader: told as any other answer's failure is
        from assistant.output import WriteError, say, write

        try:
            write(text)
        except WriteError as error:
            say(f"gpudiag: {error}")
            return 2
    return 0


def _guarded(words: list[str]) -> int:
    """Run `words`; nothing leaves here but an exit code."""
    from assistant.exits import Exit
    from assistant.output import say, silence, unwritable
    from knowledge.errors import GpudiagError

    _lenient_streams()
    try:
        code = _dispatch(words)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            unwritable(error)
        return code
    except GpudiagError as error:
        say(f"gpudiag: {error}")
        return Exit.USAGE
    except BrokenPipeError:  # the reader has gone: it has what it wanted
        silence()
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except SystemExit as leaving:  # argparse after --help
        if (leaving.code is None or isinstance(leaving.code, int)) and _own(leaving):
            return leaving.code or Exit.OK
        return _bug(leaving)
    except RecursionError as error:
        return _bug(error)
    except Exception as error:  # noqa: BLE001 - the last line: a bug is told in one sentence, with exit 70
        return _bug(error)


def _own(leaving: SystemExit) -> bool:
    """Whether argparse or gpudiag ended the program, and no module of another name that stands in a library's place."""
    trace = leaving.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = str(trace.tb_frame.f_globals.get("__name__")) if trace is not None else ""
    return name.partition(".")[0] in ("argparse", "assistant")


def _dispatch(words: list[str]) -> int:
    index = _command_index(words)
    if index is None and _at_a_terminal() and not {"-h", "--help"} & set(words):
        index, words = len(words), [*words, ALONE]
    if index is None:
        from assistant.arguments import full_parser

        if words and words[0] not in ("-h", "--help"):
            full_parser(load_all()).parse_args(words)  # says what is wrong with the flags
        full_parser(load_all()).print_help()
        return 0
    from assistant import config
    from assistant.exits import Exit
    from assistant.output import say
    from knowledge.errors import GpudiagError

    if words[index] not in command_modules() and any(w.startswith("-") for w in words[:index]):
        from assistant.arguments import full_parser

        full_parser(load_all()).parse_args(words[:index])  # a misspelt flag: its value is no command
    command = load(words[index])
    rest = words[:index] + words[index + 1 :]
    args = _plain(command, rest)
    if args is None:
        from assistant.arguments import command_parser

        args = command_parser(command).parse_args(rest)
    settings = config.load({"format": args.format, "lang": args.lang, "color": args.color})
    if settings.cache_dir:
        os.environ["GPUDIAG_CACHE_DIR"] = str(settings.cache_dir)
    if settings.runbook_dirs:
        from knowledge.runbook import lay_over

        lay_over(settings.runbook_dirs)
    for warning in settings.warnings:
        say(f"gpudiag: {warning}", args.quiet)
    args.settings = settings
    try:
        return command.run(args)
    except GpudiagError as error:
        say(f"gpudiag: {error.in_(settings.output.lang)}")
        return Exit.USAGE


def _at_a_terminal() -> bool:
    """Whether somebody sits there to whom a screen can be shown: all three streams, and a terminal that can be drawn on."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and all(s is not None and s.isatty() for s in streams)


def _plain(command: Command, words: list[str]) -> argparse.Namespace | None:
    """The arguments of a command that takes nothing but words, when there are no flags among them.

    Such a command names its only operand in ``WORDS``. No parser is needed then, and building
    one takes a tenth of what `explain` may cost.
    """
    operand = getattr(command, "WORDS", "")
    if not operand or not words or any(word.startswith("-") for word in words):
        return None
    from types import SimpleNamespace

    absent = {"format": None, "lang": None, "color": None, "quiet": False}
    return SimpleNamespace(**absent, **{operand: words})  # type: ignore[return-value]  # a Namespace is no more than that


def _command_index(words: Sequence[str]) -> int | None:
    """Where the command's name stands; None when there is none or help is asked for first."""
    skip = False
    for i, word in enumerate(words):
        if skip:
            skip = False
        elif word in _VALUE_FLAGS:
            skip = True
        elif word in ("-h", "--help"):
            return None
        elif not word.startswith("-"):
            return i
    return None


def command_modules() -> Mapping[str, str]:
    """Every command's name and module, from the folder."""
    folder = os.path.join(os.path.dirname(__file__), "commands")  # noqa: PTH118, PTH120 - pathlib costs as much as --version
    stems = sorted(n[:-3] for n in os.listdir(folder) if n.endswith(".py") and not n.startswith("_"))  # noqa: PTH208
    return {stem.rstrip("_").replace("_", "-"): f"assistant.commands.{stem}" for stem in stems}


def load(name: str) -> Command:
    """The command called `name`. UnknownNameError with the nearest names."""
    import importlib

    modules = command_modules()
    if name not in modules:
        from knowledge.errors import UnknownNameError

        raise UnknownNameError("command", name, modules)
    command: Command = importlib.import_module(modules[name])  # a module is the protocol
    return command


def load_all() -> list[Command]:
    """Every command, for help and completion."""
    return [load(name) for name in command_modules()]


def _lenient_streams() -> None:
    """A terminal that cannot show a character shows a question mark; it never costs the answer."""
    import io

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _bug(error: BaseException) -> int:
    """Say so with the standard library alone: a module that is loaded here may be what fails."""
    from assistant.exits import Exit

    words = (w.rsplit("/", 1)[-1] if "/" in w else w for w in f"{type(error).__name__}: {error}".split())
    said = " ".join(words)  # folders of the machine stay out of bug reports
    detail = said if len(said) <= 200 else f"{said[:140]} ... {said[-55:]}"
    if os.environ.get("GPUDIAG_DEBUG") == "1":
        lines = [*_frames(error), f"gpudiag: this is a bug in gpudiag ({detail})"]
    else:
        lines = [f"gpudiag: this is a bug in gpudiag ({detail}); GPUDIAG_DEBUG=1 shows where, please report it"]
    if sys.stderr is not None:
        sys.stderr.write("".join("".join(c for c in line if c.isprintable()) + "\n" for line in lines))
        sys.stderr.flush()
    return Exit.BUG


def _frames(error: BaseException) -> list[str]:
    """The traceback as module, line and function: no path of the machine it ran on."""
    out, here = [], error.__traceback__
    while here is not None:
        code = here.tb_frame.f_code
        out.append(f"  {here.tb_frame.f_globals.get('__name__', '?')}:{here.tb_lineno} in {code.co_qualname}")
        here = here.tb_next
    return out
