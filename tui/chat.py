"""The conversation: what was said, what is being done for it, the answer with its evidence, what could be asked next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.message import Message
from textual.widgets import Static

from knowledge.errors import UsageError
from knowledge.language import Text
from tui.course import Course
from tui.messages import Goto
from tui.narration import Narration, Retold, Suggested
from tui.widgets.rows import LETTERS, Stop
from tui.widgets.sentence import Sentence
from tui.widgets.transcript import Transcript
from tui.widgets.turns import Turn

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from assistant.config import Output
    from assistant.session.past import Past
    from assistant.session.shown import Choice, Shown
    from assistant.session.state import Origin
    from tui.app import GpudiagApp
    from tui.talk import Failed, GoesOn, Heard, Said, Waits, Working
    from tui.work import Job

# What an empty page offers. Written out here: loading what answers them takes longer than the first paint may.
STARTERS = (
    Text("is this node healthy?", "这个节点健康吗？"),
    Text("what is xid 79?", "xid 79 是什么？"),
    Text("how do I enable ECC?", "如何开启 ECC？"),
)


class Offers(Message):
    """What Tab completes: sentences, and names."""

    def __init__(self, sentences: tuple[str, ...], names: tuple[str, ...]) -> None:
        super().__init__()
        self.sentences, self.names = sentences, names


class InFull(Message):
    """All of an answer."""

    def __init__(self, turn: Turn, shown: Shown) -> None:
        super().__init__()
        self.turn, self.shown = turn, shown


class _Hint(Static):
    """That there is more below; a click goes there."""

    def on_click(self) -> None:
        """To the end."""
        self.screen.query_one(Transcript).action_edge(1)


class Chat(Container):
    """The talk above, the line below."""

    app: GpudiagApp
    course: Course
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(f"alt+{letter}", f"letter('{letter}')", show=False) for letter in LETTERS),
        Binding("shift+tab", "transcript", "Answers", show=False),
        Binding("ctrl+up", "transcript", show=False),
    ]
    DEFAULT_CSS = """
    Chat { layout: vertical; height: 1fr; }
    Chat #hint { height: 1; display: none; padding: 0 1; color: $accent; background: $background; }
    Chat #hint.-shown { display: block; }
    Chat #line { height: auto; background: $panel; padding: 0 1 0 0; }
    Chat #sign { width: 2; padding-left: 1; color: $faint; }
    Chat #line:focus-within #sign { color: $accent; text-style: bold; }
    Chat Sentence { width: 1fr; margin-left: 1; }
    """

    transcript: Transcript  # what was said
    line: Sentence  # where it is typed

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sentences: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._about: Origin | None = None  # what the talk was last said to be about

    def compose(self) -> ComposeResult:
        """Turns, a hint that there is more, the line."""
        self.transcript = Transcript(id="said")
        self._more = _Hint(id="hint", markup=False)
        self.line = Sentence(self._past(), self._completed)
        yield self.transcript
        yield self._more
        with Horizontal(id="line"):
            yield Static("❯", id="sign", markup=False)
            yield self.line

    def on_mount(self) -> None:
        """Greet; then see what was said before."""
        self.course = Course(self.transcript, self.app.t)
        desk = self.app.desk
        self._narration = Narration(desk.settings, self.app.jobs, self.post_message, lambda: desk.inventory().hosts)
        self._about = self.app.desk.origin
        self._greet()
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.app.desk.talk.go_on()
        self.app.jobs.start("names", self._find_offers)

    def focus_input(self) -> None:
        """The next key is a word, also when it was typed already."""
        self.screen.set_focus(self.line)

    def _past(self) -> Past:
        from assistant.config import state_folder
        from assistant.session.past import Past

        settings = self.app.args.settings
        past = Past(state_folder(settings) if settings.dialogue.days else None)
        past.load()
        return past

    def tick(self) -> None:
        """Once a second: what is under way takes longer."""
        if self.course.turn is not None:
            self.transcript.tick()
        self._hint()

    # --- what is typed ----------------------------------------------------------------------

    def on_sentence_submitted(self, event: Sentence.Submitted) -> None:
        """A sentence."""
        event.stop()
        self.app.desk.talk.say(event.text, about=self.app.desk.picture)

    def on_sentence_read(self, event: Sentence.Read) -> None:
        """A page up or down."""
        event.stop()
        self.transcript.action_page(event.by)
        self._hint()

    def on_sentence_command(self, event: Sentence.Command) -> None:
        """A colon or a question mark on an empty line is what it is everywhere else."""
        event.stop()
        if event.sign == ":":
            self.app.workspace.action_command()
        else:
            self.app.action_help()

    def _completed(self, text: str) -> list[str]:
        from assistant.session.completing import completed

        newest = next((t.shown.suggestions for t in reversed(self.transcript.turns) if t.shown is not None), ())
        return completed(text, (*newest, *self._sentences), self._names)

    def _find_offers(self, job: Job) -> None:
        from assistant.session.completing import names, sentences

        desk = self.app.desk
        found = Offers(sentences(desk.lang), names(desk.inventory().hosts, desk.picture.diagnosis))
        job.check()
        self.post_message(found)

    def on_offers(self, message: Offers) -> None:
        """They have been found."""
        self._sentences, self._names = message.sentences, message.names

    # --- turns: what the app tells ------------------------------------------------------------

    def heard(self, message: Heard) -> None:
        """A question began."""
        self.transcript.follow()
        self.course.heard(message)

    def waits(self, message: Waits) -> None:
        """Something waits for the turn that is under way, or does no longer."""
        self.course.waits(message)

    def working(self, message: Working) -> None:
        """What is being done."""
        self.course.working(message)

    def said(self, message: Said) -> None:
        """The answer."""
        turn = self.course.said(message)
        self._hint()
        self.app.jobs.start("names", self._find_offers)
        self._narration.begin(turn, message.answer)
        if message.shown.terms is not None:
            self._ask(turn)

    def on_retold(self, message: Retold) -> None:
        """An answer in other words: it stands below the answer, and nothing else moves."""
        message.turn.retold = message.heading, message.text
        self.transcript.changed(message.turn)

    def on_suggested(self, message: Suggested) -> None:
        """What a sentence may have meant: it is asked below it, while nothing else was said."""
        if message.turn is self.transcript.turns[-1]:
            message.turn.meant = message.meant
            self.transcript.changed(message.turn)

    def on_unmount(self) -> None:
        """The app ends."""
        self._narration.close()

    def failed(self, message: Failed) -> None:
        """No answer: what went wrong, or what was cancelled."""
        self.course.failed(message)

    def goes_on(self, message: GoesOn) -> None:
        """A conversation of before goes on."""
        if not self.course.idle:
            return
        t = self.app.t
        about = message.about
        said = t(f"Going on with: {about} (:new begins anew)", f"继续之前的对话：{about}（:new 重新开始）")
        self.course.note(said + (f"\n{message.headline}" if message.headline else ""))
        if message.asked is not None:
            self.transcript.add(Turn(t("still open", "尚待回答"), own=True, shown=message.asked))

    def source_changed(self) -> None:
        """Something else is looked at, or the language is another one."""
        self.line.placeholder = self._placeholder()
        self.transcript.rebuild()
        if self._about != self.app.desk.origin:
            self._about = self.app.desk.origin
            self.course.note(f"— {self._source()} —")
        elif self.course.idle:
            self.course.clear()
            self._greet()

    def cleared(self) -> None:
        """Begin a new conversation."""
        self.app.desk.talk.cancel()
        self.course.clear()
        self._greet()

    def _greet(self) -> None:
        t = self.app.t
        self.line.placeholder = self._placeholder()
        said = t(
            "Ask in your own words, or paste a log.\n"
            "Tab completes · ↑ earlier sentences · Esc breaks off\nShift-Tab to the answers · ? all keys",
            "请直接提问，也可以粘贴日志。\nTab 补全 · ↑ 之前的语句 · Esc 中断\nShift-Tab 转到答案 · ? 全部按键",
        )
        self.course.note(said, self._starters())

    def _starters(self) -> tuple[str, ...]:
        return tuple(text.in_(self.app.desk.lang) for text in STARTERS)

    def _placeholder(self) -> str:
        first = self._starters()[0]
        return self.app.t(f"Ask, for example: {first}", f"提问，例如：{first}")

    def _source(self) -> str:
        origin = self.app.desk.origin
        names = [name.rpartition("/")[2] for name in filter(None, (origin.bundle, *origin.logs, *origin.inputs))]
        return ", ".join(names[:3]) or origin.host or self.app.t("this machine", "本机")

    # --- what is asked, and chosen ------------------------------------------------------------

    def on_transcript_chosen(self, event: Transcript.Chosen) -> None:
        """A chip, a command, a place."""
        event.stop()
        turn, stop = event.turn, event.stop_
        match stop.kind:
            case "chip":
                self.app.desk.talk.say(stop.value, about=self.app.desk.picture)
            case "meant":
                self.app.desk.talk.say(stop.value.asks, stop.value.query, about=self.app.desk.picture)
            case "choice" if turn.asked:
                self._tell(turn, stop.value)
            case "consent" if turn.asked:
                self._consent(turn, stop)
            case "code":
                self.app.copy_to_clipboard(stop.copy)
                self.app.notify(self.app.t("Copied", "已复制"), timeout=2)
            case "goto":
                self.post_message(Goto(*stop.value))
            case "more" if turn.shown is not None:
                shown = turn.shown
                self.app.jobs.start("in full", lambda job: self._fill(job, turn, shown))

    def _fill(self, job: Job, turn: Turn, shown: Shown) -> None:
        from assistant.session.shown import in_full
        from assistant.sources import tells

        found = in_full(shown, tells)
        job.check()
        self.post_message(InFull(turn, found))

    def on_in_full(self, message: InFull) -> None:
        """All of an answer is there."""
        message.turn.shown, message.turn.full = message.shown, True
        self.transcript.changed(message.turn)

    def _tell(self, turn: Turn, choice: Choice) -> None:
        self.course.close(turn)
        self.app.desk.talk.tell(choice.event, choice.text)

    def _consent(self, turn: Turn, stop: Stop) -> None:
        """A "no" costs nothing; before a "yes" the price is shown."""
        from assistant.session.steps import Confirmed

        if stop.value.event == Confirmed(False):
            self._tell(turn, stop.value)
        else:
            self._open(turn)

    def _ask(self, turn: Turn) -> None:
        """A question for consent comes up by itself only where nobody is busy with something else."""
        workspace = self.app.workspace
        idle = not self.line.text and not self.app.desk.talk.waiting
        if workspace.name_shown == "chat" and self.app.screen is workspace and idle:
            self._open(turn)
        else:
            self.app.notify(self.app.t("A question waits in the chat.", "对话中有问题等待回答。"))

    def _open(self, turn: Turn) -> None:
        from tui.widgets.consent import Consent

        shown = turn.shown
        if shown is None or shown.terms is None:
            return
        choices = {c.event: c for c in shown.choices}

        def decided(yes: bool | None) -> None:
            from assistant.session.steps import Confirmed

            if yes is not None and turn.asked:
                self._tell(turn, choices[Confirmed(yes)])
            self.focus_input()

        self.app.push_screen(Consent(shown.terms, shown.lang), decided)

    # --- keys -------------------------------------------------------------------------------

    def action_letter(self, letter: str) -> None:
        """Alt with the letter of a chip."""
        self.transcript.letter(letter)

    def action_transcript(self) -> None:
        """To what was said."""
        self.transcript.focus()

    def _hint(self) -> None:
        """Say that there is more below, while somebody reads further up."""
        said = self.transcript
        below = said.max_scroll_y - round(said.scroll_y)
        hint = self._more
        shown = below > 2 and not said.following
        if shown != hint.has_class("-shown"):
            hint.set_class(shown, "-shown")
            hint.update(self.app.t("▼ more below", "▼ 下方还有内容"))

    # --- copy, export, keep -------------------------------------------------------------------

    def copied(self) -> str:
        """What is under the cursor, else the answer."""
        found = self.transcript.stop_at if self.transcript.has_focus else None
        if found is not None and found[1].copy:
            return found[1].copy
        turn = self.transcript.turn_here()
        if turn is None or turn.shown is None:
            return ""
        return self._as(turn, self.app.desk.settings.output._replace(format="text", color="never"))

    def exported(self, output: Output) -> str:
        """The answer under the cursor, else the last one, in a format. UsageError when there is none."""
        turn = self.transcript.turn_here()
        if turn is None or turn.shown is None:
            raise UsageError("there is no answer yet", hint="ask something first", zh="还没有回答", hint_zh="请先提问")
        return self._as(turn, output, verbose=True)

    def _as(self, turn: Turn, output: Output, *, verbose: bool = False) -> str:
        from assistant.commands.ask import nothing
        from assistant.render import reply as render
        from assistant.sources import tells

        assert turn.shown is not None
        answer = turn.shown.answer
        args: Any = self.app.args
        return render.show(
            answer.reply, output, tells, question=answer.question, query=answer.query, verbose=verbose,
            empty=lambda: nothing(args, answer.reply.headline),
        )  # fmt: skip
