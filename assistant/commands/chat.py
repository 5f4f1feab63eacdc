"""``gpudiag chat``: a conversation in the terminal, or over a pipe; recorded, and held again as a test."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from assistant.output import say, write
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.commands._chatting import Chatting
    from assistant.commands._talk import Talk
    from assistant.session.store import Dialogues
    from assistant.session.terminal import Editor
    from assistant.session.transcript import Recorder

NAME = "chat"
HELP = "a conversation: ask, be asked, ask why"
_END = frozenset({"exit", "quit", "bye", "q", ":q", "退出", "再见"})
_HELLO = Text(
    "Ask in your own words; Tab completes, Ctrl-C breaks off, Ctrl-D ends.",
    "请直接提问；Tab 补全，Ctrl-C 中断，Ctrl-D 结束。",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it is about, and whether it is recorded."""
    from assistant.commands.ask import add_sources

    add_sources(parser)
    add = parser.add_argument
    add("--thread", default="", metavar="NAME", help="a conversation of its own beside this terminal's")
    add("--new", action="store_true", help="begin a new conversation")
    add("--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided")
    add("--record", metavar="FILE", help="begin a new conversation and write it to a new file")
    add("--replay", metavar="FILE", help="hold a recorded conversation again; exit code 1 when an answer differs")
    from assistant.commands._narration import add_option

    add_option(parser, "--narrate at a terminal where a model is set, where it appears later; else --no-narrate")


def run(args: argparse.Namespace) -> int:
    """Talk until the person has enough."""
    from knowledge.errors import UsageError

    if args.settings.output.format == "html":
        raise UsageError(
            "a conversation is no page", hint='chat speaks text, markdown and json; say "export as html" in it'
        )
    if args.replay:
        from assistant.commands._recording import replay

        return replay(args)
    return _record(args) if args.record else _talk(args)


def _talk(args: argparse.Namespace) -> int:
    from assistant.commands._talk import Talk
    from assistant.session.key import terminal_key
    from assistant.session.store import dialogues

    memory = dialogues(args.settings)
    here = Talk(args, memory, terminal_key(args.thread))
    _converse(here, None, memory)
    return 0


def _record(args: argparse.Namespace) -> int:
    from assistant.commands._recording import begin

    here, recorder = begin(args)
    try:
        _converse(here, recorder, None)
    finally:
        recorder.close()
    say(f"gpudiag: recorded in {args.record}", args.quiet)
    return 0


def _converse(here: Talk, recorder: Recorder | None, memory: Dialogues | None) -> None:
    """Sentences in, answers out, until there are no more."""
    from assistant.session.reading import Sentences
    from assistant.session.terminal import next_line

    editor = _editor(here.args)
    if editor is not None:
        _greet(here)
    sentences = Sentences(next_line(editor))
    narration = _narration(here, editor, recorded=recorder is not None)
    said: set[str] = set()
    try:
        while (text := _next(sentences, editor)) is not None:
            _one(here, text, recorder, editor, narration)
            for complaint in memory.complaints if memory is not None else ():
                line = complaint.in_(here.args.settings.output.lang)
                if line not in said:
                    say(f"gpudiag: {line}", here.args.quiet)
                said.add(line)
    finally:
        if editor is not None:
            editor.close()
        if narration is not None:
            narration.close()


def _narration(here: Talk, editor: Editor | None, *, recorded: bool) -> Chatting | None:
    if here.args.narrate is None and not here.args.settings.llm.model:
        return None
    from assistant.commands._chatting import chatting

    return chatting(here, editor, recorded=recorded)


def _next(sentences: Any, editor: Editor | None) -> str | None:
    """What is said next; None at the end. Ctrl-C at the prompt begins a new line."""
    while True:
        try:
            text: str | None = sentences.next()
        except KeyboardInterrupt:
            if editor is None:
                raise
            say("")
            continue
        if text is None and editor is not None:
            say("")
        return None if text is None or text.casefold() in _END else text


def _one(
    here: Talk, text: str, recorder: Recorder | None, editor: Editor | None, narration: Chatting | None
) -> None:  # fmt: skip
    """One turn: shown, and recorded. What goes wrong in it is told; the next sentence is none the worse for it."""
    from assistant.commands._recording import turn_of
    from assistant.commands._talk import plain_output, shown
    from assistant.output import WriteError
    from assistant.render import reply as render
    from assistant.session.phrases import BROKEN
    from knowledge.errors import GpudiagError

    args = here.args
    try:
        meant = narration.said(text) if narration is not None else None
        answer = here.turn(text if meant is None else meant.text, meant)
    except KeyboardInterrupt:
        if editor is None:
            raise
        say(f"\n{BROKEN.in_(here.talk.state.lang or args.settings.output.lang)}")
        return
    except WriteError:
        raise
    except GpudiagError as error:
        say(f"gpudiag: {error}")
        if recorder is not None:
            recorder.add(turn_of(here, text, f"gpudiag: {error}\n", recorder))
        return
    if args.settings.output.format == "text" and answer.query is not None:
        say(render.echo(answer.query), args.quiet)
    if narration is not None:
        narration.turned(answer)
    page = shown(args, answer, args.settings.output)
    write(page if narration is None else narration.within(page))
    if narration is not None:
        narration.below()
    if recorder is not None:
        recorder.add(turn_of(here, text, shown(args, answer, plain_output(args)), recorder))
    if args.settings.output.format != "json":
        write("\n")
    if editor is not None:
        editor.offer(answer.reply.suggestions, here.talk.session.inventory.hosts)


def _editor(args: argparse.Namespace) -> Editor | None:
    """A terminal's line editor; None where lines come over a pipe."""
    from assistant.config import state_folder
    from assistant.session.terminal import Editor, interactive

    if not interactive():
        return None
    return Editor(state_folder(args.settings) if args.settings.dialogue.days else None)


def _greet(here: Talk) -> None:
    lang = here.args.settings.output.lang
    say(_HELLO.in_(lang), here.args.quiet)
    if about := here.goes_on():
        say(
            Text(f"Going on with: {about} (--new begins anew)", f"继续之前的对话：{about}（--new 重新开始）").in_(lang),
            here.args.quiet,
        )
