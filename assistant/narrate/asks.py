"""What a surface may have asked of the model: a reply in other words, the prose of a report, what a sentence may have meant.

Each makes a payload and judges the answer to it; `Narrator.ask` takes them. What comes back is told in the words of the surfaces:
the text, and the findings of the diagnosis that it rests on, by their own ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assistant.narrate.completion import Messages
from assistant.narrate.reasons import NarrationError, Reason
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Llm
    from assistant.incidents.report import Report
    from assistant.narrate.fence import Narration
    from assistant.narrate.material import Material
    from assistant.narrate.narrator import Asked
    from assistant.narrate.slots import Prepared as Sentence
    from assistant.narrate.slots import Suggestion
    from assistant.reply import Reply
    from assistant.session.driver import Answer

Make = Callable[["Llm"], "Asked"]
_NO_MEANING = Text("What the model takes the sentence for does not stand in it.", "模型对该语句的理解与语句内容不符。")


@dataclass(frozen=True, slots=True)
class Retold:
    """Words that passed the fence."""

    lang: str
    text: str
    cites: tuple[str, ...] = ()  # ids of findings, each once


class _Rewording:
    def __init__(self, messages: Messages, material: Material, finish: Callable[[str], Narration]) -> None:
        self.messages, self._material, self._finish = messages, material, finish

    def finish(self, text: str) -> Retold:
        """NarrationError(FENCE) when nothing passed."""
        found, known = self._finish(text), self._material.by_id
        cites = (own for s in found.sentences for c in s.cites for own in known[c].findings)
        return Retold(found.lang, found.text, tuple(dict.fromkeys(cites)))


def not_understood(found: Answer) -> bool:
    """Whether the sentence said nothing to us, and nothing is being asked that it may have answered."""
    from assistant.intent.query import Intent

    return found.query is not None and found.query.intent is Intent.UNKNOWN and found.pending is None


def answered(found: Answer) -> Make:
    """The answer of a turn in other words, where it tells of a diagnosis that was seen. What explains, supposes or lists is told
    in its own words only: a rewording of the diagnosis below it would be none of the answer."""
    from assistant.intent.query import Intent
    from assistant.render.reply import diagnosed

    told = (Intent.DIAGNOSE, Intent.VERDICT, Intent.CONFIRM, Intent.DENY)
    reply = found.reply
    health = diagnosed(reply) is not None or (found.query is not None and found.query.intent in told)
    return answer(reply) if health and not reply.hypothetical else _nothing


def _nothing(_: Llm) -> Asked:
    raise NarrationError(Reason.NOTHING)


def answer(reply: Reply) -> Make:
    """`reply` in other words, for the audience of the settings."""

    def make(llm: Llm) -> Asked:
        from assistant.narrate.narrator import reworded

        asked = reworded(reply, llm)
        return _Rewording(asked.messages, asked.prepared.material, asked.finish)

    return make


def postmortem(report: Report, lang: str) -> Make:
    """The prose of a post-mortem."""

    def make(_: Llm) -> Asked:
        from assistant.narrate import fence
        from assistant.narrate import postmortem as prose

        prepared = prose.prepare(report, lang)
        if prepared is None:
            raise NarrationError(Reason.NOTHING)

        def finish(text: str) -> Narration:
            found = prose.finish(prepared, text)
            if isinstance(found, fence.Withheld):
                raise NarrationError(Reason.FENCE, str(found))
            return found

        return _Rewording(prepared.messages, prepared.material, finish)

    return make


class _Meaning:
    def __init__(self, prepared: Sentence) -> None:
        self._prepared, self.messages = prepared, prepared.messages

    def finish(self, text: str) -> Suggestion:
        """NarrationError(NOTHING) when it suggests nothing, or what the sentence does not say."""
        from assistant.narrate import slots

        found = slots.finish(self._prepared, text)
        if found is None:
            raise NarrationError(Reason.NOTHING, said=_NO_MEANING)
        return found


def meaning(sentence: str, lang: str, hosts: Sequence[str]) -> Make:
    """What a sentence may have meant that nobody understood: to be confirmed. `hosts`: the machines that are known."""

    def make(_: Llm) -> Asked:
        from assistant.narrate import slots

        return _Meaning(slots.prepare(sentence, lang, hosts))

    return make
