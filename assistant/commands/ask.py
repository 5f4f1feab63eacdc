"""``gpudiag ask "SENTENCE"``: one turn of the conversation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.output import Progress, say, write
from knowledge.language import NO_TEXT, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from assistant.commands._narrated import Narration
    from assistant.diagnosis import Diagnosis
    from assistant.session.driver import Answer, Conversation, Eyes
    from assistant.session.state import Origin

NAME = "ask"
BUDGET = 30.0  # seconds: what `--budget` and a conversation that was told nothing about probing begin with
HELP = "ask in your own words: what is wrong, why, what if, what to do"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sentence, what it is about, and how to answer."""
    add = parser.add_argument
    add("words", nargs="*", metavar="SENTENCE", help="what you want to know; - or nothing reads it from standard input")
    add_sources(parser)
    add("--dry-run", action="store_true", help="only say what was understood; nothing is run")
    add("--thread", default="", metavar="NAME", help="a conversation of its own beside this terminal's")
    add("--new", action="store_true", help="begin a new conversation")
    add(
        "--yes",
        action="store_true",
        help="agree to looks that take seconds and disturb nothing; never to what runs inside a job",
    )
    add("--verbose", action="store_true", help="everything: all evidence, the rule's page, all that is undecided")
    from assistant.commands._narration import add_option

    add_option(parser, "--no-narrate")


def add_sources(parser: argparse.ArgumentParser) -> None:
    """What a conversation is about: shared by `ask` and `chat`."""
    from assistant.commands.check import add_probing
    from assistant.inventory.target import add_target, names

    add = parser.add_argument
    add("--bundle", default="", metavar="FILE", help="a recorded machine instead of this one")
    add("--log", nargs="+", action="extend", default=[], metavar="FILE", help="logs instead of this machine")
    add("--input", nargs="+", action="extend", default=[], metavar="FILE", help="any captured output")
    names(
        add(
            "--host",
            default="",
            metavar="NAME",
            help="ask about this node, from here; beside files: the node that they come from",
        )
    )
    add("--site", metavar="FILE", help="site file: changed thresholds and severities, suppressed rules")
    add("--rules", action="append", default=[], metavar="PACK", help="rule file or folder laid over the shipped rules")
    add("--no-history", action="store_true", help="do not read the history")
    add_target(parser)
    add_probing(parser, " (without --bundle, --log and --input)")


def origin_of(args: argparse.Namespace, eyes: Eyes | None = None) -> Origin:
    """What the options say that the conversation is about. UnknownNameError for a node that cannot be looked at from here."""
    from assistant.session.state import Origin, folder

    given = Origin(args.bundle, tuple(args.log), tuple(args.input), args.host, folder())
    if not given.live or not given.host:
        return given
    from assistant.inventory.target import target

    other = target(args, eyes.others if eyes is not None else None)
    return Origin(host=other.name) if other is not None else given._replace(host="")


def eyes_of(args: argparse.Namespace, bar: Progress) -> Eyes:
    """What a conversation can reach from here."""
    from assistant.commands.check import bytes_read, probing, wish
    from assistant.commands.rules import ruleset
    from assistant.inventory.target import reachable
    from assistant.session.driver import Eyes

    rules = ruleset(args, args.settings)
    plain = not (args.probe or args.with_ or args.without or args.again) and args.budget == BUDGET
    # What looks at machines is loaded when one is looked at, unless the options ask something of it.
    wanted = None if plain else wish(args)
    others = reachable(args)
    return Eyes(args.settings, rules, wanted, probing(bar), bytes_read(bar), history=not args.no_history, others=others)


def run(args: argparse.Namespace) -> int:
    """Understand, look, answer."""
    from assistant.commands._narration import narrating

    sentence = _sentence(args)
    if args.dry_run:
        return _only_understood(args, sentence)
    with narrating(args) as narration:
        answer = _answered(args, sentence, narration)
        if narration is not None:
            narration.below()
    return answer.exit


def _answered(args: argparse.Namespace, sentence: str, narration: Narration | None) -> Answer:
    """One turn, with what is asked and agreed to in it."""
    from functools import partial

    from assistant.session.key import terminal_key
    from assistant.session.steps import Confirmed
    from assistant.session.store import dialogues
    from assistant.session.talk import remembered

    bar = Progress(args.quiet)
    memory = dialogues(args.settings)
    key = terminal_key(args.thread)
    eyes = eyes_of(args, bar)
    origin = origin_of(args, eyes)
    with remembered(eyes, memory, key, new=args.new, agreed=args.yes) as talk:
        if args.host and origin.live and talk.state.frame.origin.live:
            talk.turn_to(origin)
        elif not talk.state.frame.origin.live and (args.probe or args.with_ or args.without or args.again):
            talk.turn_to(
                origin
            )  # options of a look at a machine mean the machine, whatever recording the talk was about
        answer = _told(args, bar, lambda: talk.say(sentence, origin), narration, talk)
        if narration is not None and narration.asks and (meant := narration.below()) is not None:
            answer = _told(args, bar, lambda: talk.say(sentence, origin, meant), narration, talk)
        while (said := _consent(args, answer)) is not None:
            bar.again()
            answer = _told(args, bar, partial(talk.tell, Confirmed(said)), narration, talk)
    for complaint in memory.complaints:
        say(f"gpudiag: {complaint.in_(args.settings.output.lang)}", args.quiet)
    return answer


def _told(
    args: argparse.Namespace, bar: Progress, turn: Callable[[], Answer], narration: Narration | None, talk: Conversation
) -> Answer:  # fmt: skip
    """One turn, shown, and meanwhile handed to the model where that is wanted."""
    try:
        answer = turn()
    finally:
        bar.done()
    if narration is not None:
        narration.answered(answer, talk.session.inventory.hosts)
    _tell(args, answer, narration)
    return answer


def _tell(args: argparse.Namespace, answer: Answer, narration: Narration | None = None) -> None:
    from assistant.render import reply as render

    if args.settings.output.format == "text" and answer.query is not None:
        say(render.echo(answer.query), args.quiet)
    text = render.show(
        answer.reply, args.settings.output, tells, question=answer.question, query=answer.query, verbose=args.verbose,
        empty=lambda: nothing(args, answer.reply.headline), alone=True,
    )  # fmt: skip
    write(narration.within(text) if narration is not None else text)


def _consent(args: argparse.Namespace, answer: Answer) -> bool | None:
    """What a person at the terminal says to the question for consent that stands above; None when nobody is there to ask, or
    says nothing: the question stays open for the next `ask`, and which command answers it is told."""
    import sys

    from assistant.session.terminal import interactive

    pending = answer.pending
    if pending is None or not pending.probes:
        return None
    lang = answer.reply.lang
    if not interactive() or args.settings.output.format != "text":
        en, zh = _how_to_agree(args.thread)
        said = Text(f"{', '.join(pending.probes)} was left out, for nobody agreed to it: {en}",
                    f"因未获同意，略去 {'、'.join(pending.probes)}：{zh}")  # fmt: skip
        say(f"gpudiag: {said.in_(lang)}", args.quiet)
        return None
    sys.stderr.write(Text("Agree? [y/N] ", "同意？[y/N] ").in_(lang))
    sys.stderr.flush()
    word = sys.stdin.readline().strip().casefold()
    return True if word in ("y", "yes", "是", "好") else False if word in ("n", "no", "不", "否") else None


def _how_to_agree(thread: str) -> tuple[str, str]:
    """The command that says yes to what was asked; without a terminal only a conversation with a name waits for it."""
    import shlex

    from assistant.session.key import terminal_key

    if thread:
        named = f"gpudiag ask --thread {shlex.quote(thread)}"
        return f"{named} yes", f"{named} 是"
    if terminal_key().lasts:
        return "gpudiag ask yes", "gpudiag ask 是"
    return (
        "without a terminal, ask with --yes or in a conversation with a name (--thread)",
        "没有终端时，请用 --yes，或用 --thread 命名对话",
    )


def tells(fact: str) -> str:
    """The inputs that would give a fact; the formats are loaded when an answer names one."""
    from assistant.sources import tells

    return tells(fact)


def _sentence(args: argparse.Namespace) -> str:
    from knowledge.errors import UsageError

    for files in (args.log, args.input):  # `ask --log kern.log "why?"`: the sentence is no file
        if not args.words and len(files) > 1 and not Path(files[-1]).exists():
            args.words = [files.pop()]
    text = " ".join(args.words)
    if text in ("", "-"):
        text = _from_stdin(needed=not text)
    if not text.strip():
        raise UsageError("nothing was asked", hint='for example: gpudiag ask "is this node healthy?"')
    return text


def _from_stdin(needed: bool) -> str:
    """The sentence on standard input; empty when there is none. A terminal is waited for only where `-` asks for it."""
    import sys

    from assistant.session.reading import LIMIT
    from assistant.session.terminal import any_bytes

    if sys.stdin is None or (needed and sys.stdin.isatty()):
        return ""
    any_bytes()
    try:
        return sys.stdin.read(LIMIT)
    except OSError as error:
        from knowledge.errors import UsageError

        raise UsageError(f"standard input cannot be read: {error.strerror}") from error


def _only_understood(args: argparse.Namespace, sentence: str) -> int:
    """What the sentence means, and nothing else: no probe, no file, no memory."""
    from assistant.intent.parse import understand
    from assistant.inventory.target import reachable
    from assistant.render import reply as render
    from assistant.render.sheet import Fields
    from assistant.reply import Reply
    from assistant.session.inventory import known

    query = understand(
        sentence, lang=args.settings.output.lang, hosts=known(args.settings, others=reachable(args)).words
    )
    rows = [(name, ", ".join(map(str, values))) for name, values in query.slots.named()]
    rows += [("topics", ", ".join(t.id for t in query.topics[:5])), ("symptoms", ", ".join(query.symptoms))]
    reply = Reply(query.lang, render.echo(query), (Fields((("intent", str(query.intent)), *rows)),))
    said = Text("Only understood: nothing was looked at.", "仅理解语句：没有查看任何信息。").in_(query.lang)
    write(render.show(reply, args.settings.output, query=query, empty=lambda: nothing(args, said)))
    return 0


def nothing(args: argparse.Namespace, said: str) -> Diagnosis:
    """The diagnosis of nothing: what JSON carries beside an answer that rests on no observation."""
    from dataclasses import replace

    from assistant.commands.rules import ruleset
    from assistant.diagnosis import State, Verdict, diagnose
    from rules.model import Usable

    empty = diagnose([], ruleset(args, args.settings))
    return replace(empty, verdict=Verdict(State.UNKNOWN, Usable.UNKNOWN, NO_TEXT, Text(said, said)))
