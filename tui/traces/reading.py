"""What was asked of the traces that are open, and what came of it: one analysis at a time, each in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.message import Message

from knowledge.errors import GpudiagError
from tui.traces.opened import Opened, recognised

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.desk import Desk
    from tui.traces.view import View
    from tui.work import Job

Words = tuple[str, ...]
_OPENING: Words = ("open",)  # stands for a command while what was named is looked for


class Answer(NamedTuple):
    """One view's data."""

    shown: Any  # what the view takes
    headline: Mapping[str, Any] | None = None
    ranks: tuple[tuple[int | None, str], ...] = ()  # of a summary: each with its file


class Progressed(Message):
    """How far an analysis is."""

    def __init__(self, words: Words, said: str) -> None:
        super().__init__()
        self.words, self.said = words, said


class Analysed(Message):
    """What an analysis came to: an answer, or why there is none."""

    def __init__(self, words: Words, answer: Answer | None, trouble: str = "") -> None:
        super().__init__()
        self.words, self.answer, self.trouble = words, answer, trouble


class Recognised(Message):
    """What was named has been found, or has not."""

    def __init__(self, opened: Opened, view: str, trouble: str = "") -> None:
        super().__init__()
        self.opened, self.view, self.trouble = opened, view, trouble


class Listed(Message):
    """The captures that there are, and which of the files that are looked at are traces."""

    def __init__(self, captures: Sequence[Mapping[str, Any]], inputs: Sequence[str], trouble: str = "") -> None:
        super().__init__()
        self.captures, self.inputs, self.trouble = captures, inputs, trouble


class Reading:
    """It lives in the thread of the app; its work only posts to the widget `to`."""

    def __init__(self, to: Widget, desk: Desk) -> None:
        self._to, self._desk = to, desk
        self._job: Job | None = None
        self.opened = Opened()
        self.answers: dict[Words, Answer] = {}
        self.troubles: dict[Words, str] = {}
        self.running: Words = ()  # what is being read
        self.said = ""  # and how far

    # --- beginning and ending -------------------------------------------------------------

    def stop(self) -> None:
        """Give up what is being read."""
        if self._job is not None:
            self._job.stop()
        self._job, self.running, self.said = None, (), ""

    def turn_to(self, opened: Opened) -> None:
        """Something else is open: what was read of the one before is let go."""
        self.stop()
        self.opened, self.answers, self.troubles = opened, {}, {}

    def find(self, files: Words, view: str) -> None:
        """Look what `files` are, to show `view` of them."""
        self.turn_to(Opened(files))

        def look(job: Job) -> None:
            try:
                said = Recognised(recognised(files), view)
            except GpudiagError as error:
                said = Recognised(Opened(files), view, error.in_(self._desk.lang))
            except OSError as error:
                said = Recognised(Opened(files), view, str(error))
            job.check()
            self._to.post_message(said)

        self.running = _OPENING
        self._job = self._desk.jobs.start("trace", look)

    def want(self, view: str, made: type[View], columns: int) -> None:
        """Read what a view needs, unless it is there or under way."""
        words = self.opened.words(view)
        if words in self.answers or (words == self.running and self._job is not None and self._job.running):
            return
        self.stop()
        self.troubles.pop(words, None)
        lang = self._desk.lang
        self.running = words
        self._job = self._desk.jobs.start("trace", lambda job: self._read(job, words, made, lang, columns))

    def _read(self, job: Job, words: Words, made: type[View], lang: str, columns: int) -> None:
        """In a thread: a process reads, and what it says is made ready to be shown."""
        from assistant.trace import child

        def told(said: str) -> None:
            job.check()
            self._to.post_message(Progressed(words, said))

        try:
            answer = child.run(("--format", made.FORMAT, "--lang", lang, *words), job.check, told, columns)
            shown = made.prepared(answer)
            said = Analysed(words, Answer(shown, made.headline(answer), _ranks(shown)))
        except GpudiagError as error:
            said = Analysed(words, None, error.in_(lang))
        job.check()
        self._to.post_message(said)

    # --- what came of it ------------------------------------------------------------------

    def found(self, message: Recognised) -> bool:
        """What was named can be read; False when it cannot, or others have been named since."""
        if message.opened.files != self.opened.files or self.running != _OPENING:
            return False
        self._job, self.running = None, ()
        if message.trouble:
            self.troubles[self.opened.words("overview")] = message.trouble
            return False
        self.opened = message.opened
        return True

    def progressed(self, message: Progressed) -> bool:
        """Whether it is of what is being read."""
        if message.words != self.running:
            return False
        self.said = message.said
        return True

    def analysed(self, message: Analysed) -> None:
        """Keep it."""
        if message.words == self.running:
            self._job, self.running, self.said = None, (), ""
        if message.answer is None:
            self.troubles[message.words] = message.trouble
            return
        self.answers[message.words] = message.answer
        if message.answer.ranks:
            self._of_rank(message.answer.ranks)

    def _of_rank(self, ranks: Sequence[tuple[int | None, str]]) -> None:
        self.opened = self.opened._replace(rank=next((r for r, file in ranks if file == self.opened.file), None))

    def untold(self, view: str) -> bool:
        """Whether a view has neither an answer nor a trouble, and nothing is being read."""
        words = self.opened.words(view)
        return words not in self.answers and words not in self.troubles and not self.running

    @property
    def ranks(self) -> tuple[tuple[int | None, str], ...]:
        """The ranks that there are, each with its file; nothing before the overview was read."""
        return next((a.ranks for a in self.answers.values() if a.ranks), ())

    # --- what else there is ---------------------------------------------------------------

    def survey(self) -> None:
        """Look for captures, and for traces among what the app looks at."""
        self._desk.jobs.start("captures", self._survey)

    def _survey(self, job: Job) -> None:
        from assistant.trace import child

        inputs = []
        for name in self._desk.origin.inputs:
            job.check()
            if _is_trace(name):
                inputs.append(name)
        try:
            told = child.run(("--format", "json", "--lang", self._desk.lang, "profile", "list"), job.check)
            said = Listed(told.data().get("captures", ()), inputs)
        except GpudiagError as error:
            said = Listed((), inputs, error.in_(self._desk.lang))
        job.check()
        self._to.post_message(said)


def _is_trace(name: str) -> bool:
    try:
        return recognised((name,)).kind in ("trace", "nsys", "nsys-trace")
    except (GpudiagError, OSError):
        return False


def _ranks(shown: Any) -> tuple[tuple[int | None, str], ...]:
    """The ranks of a summary."""
    if not isinstance(shown, dict) or shown.get("schema") != "gpudiag/trace-summary/1":
        return ()
    return tuple((r["rank"], r["file"]) for r in shown.get("ranks", ()))
