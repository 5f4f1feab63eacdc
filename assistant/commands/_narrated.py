"""What a language model makes of an answer, below the answer, which stands first and is never changed by it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from assistant.narrate import asks
from assistant.narrate.asks import Retold
from assistant.narrate.beside import Beside
from assistant.narrate.narrator import Narrated, Withheld
from assistant.narrate.reasons import Reason
from assistant.output import Progress, say, write
from assistant.render import narration as render
from assistant.session.terminal import interactive
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from assistant.intent.query import Query
    from assistant.narrate.asks import Make
    from assistant.narrate.narrator import Pending
    from assistant.narrate.slots import Suggestion
    from assistant.render.sheet import Part
    from assistant.reply import Reply
    from assistant.session.driver import Answer

LATE = 1.0  # seconds beyond the model's deadline
_WHOLE = ("json", "html")  # formats that have one end


class Narration:
    """One answer after the other. Ctrl-C ends the wait for a model and nothing else."""

    def __init__(self, args: argparse.Namespace, beside: Beside | None = None) -> None:
        """`beside`: one that exists already; else one is made, and loads what it needs in the background."""
        self._args, self._output, self._llm = args, args.settings.output, args.settings.llm
        self._beside = beside or Beside(args.settings)
        self._pending: Pending | None = None
        self._lang = self._output.lang
        self.asks = False  # what is awaited is the meaning of a sentence
        self.suggested: Suggestion | None = None  # what was told of a sentence that nobody understood

    def begin(self, reply: Reply) -> None:
        """Have it reworded while it is shown."""
        self.ask(asks.answer(reply), reply.lang)

    def answered(self, answer: Answer, hosts: Sequence[str]) -> None:
        """The answer of a turn; of a sentence that nobody understood, what it may have meant among the machines `hosts`."""
        query = answer.query
        if query is not None and asks.not_understood(answer):
            self.asks = True
            self.ask(asks.meaning(query.text, query.lang, hosts), query.lang)
        else:
            self.asks = False
            self.ask(asks.answered(answer), answer.reply.lang)

    def ask(self, make: Make, lang: str) -> None:
        """Begin."""
        self._lang, self._pending = lang, self._beside.ask(make)

    def drop(self) -> None:
        """Something else is being said: what comes now comes too late."""
        self._pending = None

    @property
    def done(self) -> bool:
        """Whether something can be shown, or told, at once."""
        return self._pending is not None and self._pending.done

    def close(self) -> None:
        """End the model's process."""
        self._beside.close()

    # --- what came of it ----------------------------------------------------------------------

    def within(self, text: str, shape: str = "", *, draft: bool = False, ahead: str = "") -> str:
        """`text` with the narration in it, where its format has one end; in other formats as it is, at once."""
        shape = shape or self._output.format
        if shape not in _WHOLE or self._pending is None:
            return text
        found = self.found()
        if shape == "html":
            if isinstance(found, Retold):
                return render.page(text, found, self._llm.model, draft=draft, ahead=ahead)
            self.show(found)
            return text
        return render.data(text, self._plain(found))

    def drafted(self) -> tuple[Part, ...]:
        """The paragraph for a report; nothing when it is withheld."""
        found = self.found()
        if isinstance(found, Retold):
            return render.parts(found, self._llm.model, draft=True)
        self.show(found)
        return ()

    def _plain(self, found: Retold | Suggestion | Withheld) -> dict[str, Any]:
        if isinstance(found, Withheld):
            self.complain(found)
            return {"withheld": found.reason.value}
        if isinstance(found, Retold):
            return render.plain(found, self._llm.model)
        self.suggested = found
        return {"question": found.question.in_(self._lang), "query": dict(found.query.plain())}

    def below(self) -> Query | None:
        """Print it behind the answer, or say why there is none. A suggestion is asked about, and returned after a yes."""
        if self._pending is None:
            return None
        return self.show(self.found())

    def show(self, found: Retold | Suggestion | Withheld) -> Query | None:
        """Print it."""
        if isinstance(found, Withheld):
            self.complain(found)
            return None
        if isinstance(found, Retold):
            write(render.below(found, self._llm.model, self._output._replace(lang=found.lang)))
            return None
        return found.query if self.confirmed(found) else None

    def found(self) -> Retold | Suggestion | Withheld:
        """What came of it, once."""
        pending, self._pending = self._pending, None
        assert pending is not None
        bar = Progress(self._args.quiet)
        bar(Text("waiting for the model (Ctrl-C: no longer)", "等待模型（Ctrl-C 不再等待）").in_(self._lang))
        try:
            found = pending.result(self._llm.deadline + LATE)
        except KeyboardInterrupt:
            why = Text("The wait for the model was broken off.", "已中断对模型的等待。")
            found = Withheld(Reason.CLOSED, why)
        finally:
            bar.done()
        if isinstance(found, Narrated):
            kept: Retold | Suggestion = found.narration
            return kept
        return found

    def complain(self, found: Withheld) -> None:
        """One line to stderr."""
        say(f"gpudiag: {render.withheld(found, self._lang)}", self._args.quiet)

    def question(self, found: Suggestion) -> str:
        """Whether it was meant."""
        return f"{clean(found.question.in_(self._lang))} [y/N]"

    def confirmed(self, found: Suggestion) -> bool:
        """Whether a person at the terminal says yes to it; elsewhere it is only told."""
        question = self.question(found)
        if not interactive() or self._output.format != "text":
            say(f"gpudiag: {question}", self._args.quiet)
            return False
        sys.stderr.write(f"{question} ")
        sys.stderr.flush()
        try:
            return yes(sys.stdin.readline())
        except KeyboardInterrupt:
            say("")
            return False


def yes(word: str) -> bool:
    """Whether it agrees."""
    return word.strip().casefold() in ("y", "yes", "是", "好")
