"""A conversation of the command line: what is remembered of it between turns, and how it is shown."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from assistant.output import Progress
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.config import Output
    from assistant.intent.query import Query
    from assistant.session.driver import Answer, Conversation, Eyes
    from assistant.session.key import Key
    from assistant.session.state import Origin, State
    from assistant.session.store import Dialogues


class Talk:
    """One conversation."""

    def __init__(self, args: argparse.Namespace, memory: Dialogues | None, key: Key | None) -> None:
        from assistant.commands.ask import eyes_of, origin_of
        from assistant.session.driver import Conversation
        from assistant.session.talk import session_of

        self.args, self._memory, self._key = args, memory, key
        self.bar = Progress(args.quiet)
        self.eyes: Eyes = eyes_of(args, self.bar)
        self.origin: Origin = origin_of(args, self.eyes)
        self.talk: Conversation = Conversation(session_of(self.eyes), self.eyes)
        self._kept: dict[str, Any] | None = None
        self._new: bool = args.new

    def turn(self, text: str, query: Query | None = None) -> Answer:
        """One turn, kept when it has ended well. `query`: as what a person agreed that it is to be understood."""
        self.bar.again()
        try:
            if self._memory is None or self._key is None:
                return self.talk.say(text, self.origin, query)
            return self._remembered(self._memory, self._key, text, query)
        finally:
            self.bar.done()

    def _remembered(self, memory: Dialogues, key: Key, text: str, query: Query | None) -> Answer:
        from assistant.session.state import plain

        with memory.opened(key) as kept:
            if kept.data is not None and kept.data != self._kept and not self._new:
                self.talk.state = _restored(memory, key, kept.data, self.talk.state)  # another process spoke meanwhile
            answer = self.talk.say(text, self.origin, query)
            kept.data = self._kept = plain(self.talk.state)
        self._new = False
        return answer

    def goes_on(self) -> str:
        """What a remembered conversation is about; empty when none is."""
        if self._memory is None or self._key is None or self._new:
            return ""
        data = self._memory.load(self._key)
        state = _restored(self._memory, self._key, data, self.talk.state) if data is not None else self.talk.state
        query = state.frame.query
        return query.echo.in_(query.lang) if query is not None else ""


def _restored(memory: Dialogues, key: Key, data: dict[str, Any], otherwise: State) -> State:
    from assistant.session.state import restored

    try:
        return restored(data)
    except ValueError as error:
        memory.set_aside(key, Text(f"is not understood ({error})", f"无法理解（{error}）"))
        return otherwise


def shown(args: argparse.Namespace, answer: Answer, output: Output) -> str:
    """An answer as the conversation prints it; JSON in one line."""
    import json

    from assistant.commands.ask import nothing
    from assistant.render import reply as render
    from assistant.sources import tells

    text = render.show(
        answer.reply, output, tells, question=answer.question, query=answer.query, verbose=args.verbose,
        empty=lambda: nothing(args, answer.reply.headline),
    )  # fmt: skip
    return json.dumps(json.loads(text), ensure_ascii=False) + "\n" if output.format == "json" else text


def plain_output(args: argparse.Namespace) -> Output:
    """How answers stand in a recorded conversation: text without colour, and without ages, which change."""
    output: Output = args.settings.output
    return output._replace(format="text", color="never", now=0)
