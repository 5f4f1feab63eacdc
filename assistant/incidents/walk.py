"""A person walks an incident's runbook: precondition, step, consent, command, verification, result, next.

Every change of state is an event of the incident, so a walk is left at any time and gone on with from any surface. What the
walk says and asks goes through a `Talk`; commands are run by `assistant.actions` alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from assistant.incidents import claims, pages, words
from assistant.incidents.deeds import open_ended
from assistant.incidents.events import Entry, Hand, Kind, StepState, runbook
from assistant.incidents.progress import StepView, books_of, values_of
from assistant.incidents.walk_parts import At, LeftError, Permit, Talk, Way, number_of, truth_of
from assistant.incidents.walk_parts import subjects as subjects_of
from assistant.incidents.walking import Commands, may_have_run
from assistant.runbooks.engine import Outcome, Stand, outcome, position
from assistant.runbooks.judging import Judge, Judged, aligned, asked_of
from assistant.runbooks.pages import why
from assistant.store.location import StoreError
from knowledge.language import Text
from rules.proof import Truth

if TYPE_CHECKING:
    from assistant.incidents.book import Book
    from assistant.incidents.fold import Incident
    from assistant.incidents.looking import Sight
    from assistant.journal import Journal
    from knowledge.runbook import Runbook, Step, Tree


class Walk:
    """One walk by one person."""

    def __init__(
        self, book: Book, number: int, hand: Hand, journal: Journal, sight: Sight, talk: Talk, way: Way,
        lang: str = "en", sleep: Callable[[float], object] = time.sleep, stop: Callable[[], bool] = lambda: False,
        permit: Permit | None = None,
    ) -> None:  # fmt: skip
        """`stop` says that the person leaves while a command runs: that ends it. `permit`: who else has a word about commands."""
        self._book, self._number, self._hand, self._sight = book, number, hand, sight
        self._talk, self._way, self._lang, self._sleep = talk, way, lang, sleep
        self._commands = Commands(journal, hand, talk, way, stop, permit, self._note)
        self._held: tuple[str, str, int] | None = None  # the step in hand, and the number of our word about it
        self._values: dict[str, str] = {}
        self._begin = dict([way.begin.split("/", 1)]) if way.begin else {}

    # --- the way through --------------------------------------------------------------------

    def run(self) -> bool:
        """Walk until the end, True; or until it is left or cannot go on, False."""
        try:
            while (at := self._at(self._book.incident(self._number))) is not None:
                if not self._step(at) or self._way.only:
                    return bool(self._way.only)
        except (LeftError, KeyboardInterrupt, EOFError) as error:
            self._leave()
            if isinstance(error, KeyboardInterrupt):
                raise
            return False
        except BaseException:
            self._leave()
            raise
        self._talk.say(Text("No step is left.", "没有剩余步骤。"))
        return True

    def show_next(self) -> None:
        """The step that has its turn, and what its precondition says; nothing is asked, run or written."""
        incident = self._book.incident(self._number)
        at = self._at(incident, follow=False)
        if at is None or at.stand.step is None:
            self._talk.say(Text("No step is left.", "没有剩余步骤。"))
            return
        step = at.stand.step
        self._values = values_of(incident) | ({"node": self._way.node} if self._way.node else {})
        self._shown(at, step, incident)
        judge = self._judge(incident, at.book, step.only_if)
        if judge is not None and step.only_if is not None:
            gate = judge.gate(step.only_if)
            self._talk.say(Text(f"if: {why(gate, 'en')}", f"条件：{why(gate, 'zh')}"))
        self._talk.say(Text(
            "Nothing was run: this is no terminal. --yes-safe runs the commands that only read.",
            "未运行任何命令：这不是终端。--yes-safe 运行只读命令。"))  # fmt: skip

    def _note(self, entry: Entry) -> None:
        self._book.add(self._number, self._hand, entry)

    def _shown(self, at: At, step: Step, incident: Incident) -> None:
        view = StepView(at.book.id, step.id, at.number, step, incident.steps.get((at.book.id, step.id)))
        self._talk.show(f"{at.book.id}/{step.id}", pages.step_parts(view, self._values, self._lang))

    def _leave(self) -> None:
        """The step in hand may be gone on with by anybody, from anywhere."""
        if self._held is not None:
            name, step, seen = self._held
            self._held = None
            entry = claims.step_entry(name, step, StepState.DOING, "left", left=True)
            try:
                self._book.change(self._number, self._hand, lambda i: claims.if_unmoved(i, name, step, seen, [entry]))
            except (claims.MovedError, StoreError):
                return
        n = self._number
        self._talk.say(
            Text(
                f"Left. gpudiag incident run {n} goes on from here.", f"已离开。gpudiag incident run {n} 可从此处继续。"
            )
        )

    def _at(self, incident: Incident, *, follow: bool = True) -> At | None:
        """The step that has its turn, of the first runbook that is not over."""
        books = books_of(incident.runbooks)
        for name, book in books.items():
            if book is None:
                continue
            marks = {s: m.state for (b, s), m in incident.steps.items() if b == name}
            if self._way.only:
                wanted, _, step = self._way.only.partition("/")
                if wanted == name:
                    return At(book, Stand(book.step(step)), number_of(book, step))
                continue
            if self._begin and name not in self._begin:
                continue
            stand = position(book, marks, self._begin.get(name, ""))
            if stand.step is not None:
                return At(book, stand, number_of(book, stand.step.id))
            if follow and stand.leads and stand.leads not in books:
                self._follow(stand.leads)
                self._begin = {}
                return self._at(self._book.incident(self._number))
        return None

    def _follow(self, name: str) -> None:
        """A step failed and its branch leads to another runbook: that belongs to the incident from here on."""
        self._talk.say(Text(f"It goes on in runbook {name}.", f"转到处置手册 {name}。"))
        self._book.add(self._number, self._hand, runbook(name))

    # --- one step ---------------------------------------------------------------------------

    def _step(self, at: At) -> bool:
        """One step from its precondition to its result. False: the walk cannot go on by itself."""
        incident, step = self._book.incident(self._number), at.stand.step
        assert step is not None  # `_at` gives none without
        if at.stand.stuck and not self._way.only:
            self._stuck(at, step)
            return False
        seen = self._free(incident, at, step)
        self._values = values_of(incident) | ({"node": self._way.node} if self._way.node else {})
        judge = self._judge(incident, at.book, step.only_if)
        gate = judge.gate(step.only_if) if judge is not None and step.only_if is not None else None
        if gate is not None and gate.truth is Truth.FALSE and not self._way.only:
            said = why(gate, "en")
            self._say_state(at, step, StepState.SKIPPED, Text(said, why(gate, "zh")))
            self._write(at, step, StepState.SKIPPED, said, seen)
            return True
        self._shown(at, step, incident)
        unsure = False
        for run in claims.runs(incident, at.book.id, step.id)[-1:]:
            unsure = open_ended(run)
            if unsure:
                self._talk.say(may_have_run(run))
                continue
            when, came = words.moment(run.at), run.text()
            self._talk.say(Text(f"Run already at {when} by {run.who}: {came}", f"{run.who} 已于 {when} 运行过：{came}"))
        if not self._goes(step, gate, ask=unsure):
            self._write(at, step, StepState.SKIPPED, "", seen)
            return True
        self._write(at, step, StepState.DOING, "", seen)
        state, text = self._done(at, step)
        assert self._held is not None  # `_write` noted it
        self._say_state(at, step, state, Text(text))
        self._write(at, step, state, text, self._held[2])
        return True

    def _free(self, incident: Incident, at: At, step: Step) -> int:
        """The number of the last word about the step, once it is ours to begin. LeftError when it is not."""
        event = claims.last(incident, at.book.id, step.id)
        held = claims.holder(event, self._hand.who)
        if event is None or held in (claims.Holder.NOBODY, claims.Holder.LEFT) or self._way.take_over:
            return event.seq if event is not None else 0
        since = words.moment(event.at)
        if held is claims.Holder.OTHER:
            self._talk.say(Text(
                f"{event.who} does step {step.id} since {since}. --take-over goes on with it in their place.",
                f"{event.who} 自 {since} 起正在执行步骤 {step.id}。--take-over 可接替执行。"))  # fmt: skip
            raise LeftError
        again = self._talk.ask(Text(
            f"You began step {step.id} at {since} and did not leave it. Go on with it here? [y/N]",
            f"您于 {since} 开始步骤 {step.id}，尚未离开。在此继续？[y/N]"))  # fmt: skip
        if again not in ("y", "yes", "是"):
            raise LeftError
        return event.seq

    def _goes(self, step: Step, gate: Judged | None, *, ask: bool) -> bool:
        """Whether the person does the step; False leaves it out. `ask`: whatever runs by itself otherwise."""
        if gate is not None and gate.truth is Truth.UNKNOWN:
            told = {lang: why(gate, lang) for lang in ("en", "zh")}
            self._talk.say(
                Text(f"Not known whether this step applies: {told['en']}", f"尚不清楚该步骤是否适用：{told['zh']}")
            )
        elif self._way.yes_safe and not ask and step.risk == "safe" and not step.when:
            return True
        question = Text("Do this step? [y]es, [s]kip, [q]uit", "执行该步骤？[y] 是，[s] 跳过，[q] 离开")
        if self._commands.would_run(step, self._values):
            question = Text("Run this command? [y]es, [s]kip, [q]uit", "运行该命令？[y] 是，[s] 跳过，[q] 离开")
        while True:
            said = self._talk.ask(question)
            if said in ("q", "quit", "离开"):
                raise LeftError
            if said in ("y", "yes", "是", "s", "skip", "跳过"):
                return said in ("y", "yes", "是")

    def _done(self, at: At, step: Step) -> tuple[StepState, str]:
        """Do it, round by round, until it is known what came of it."""
        incident = self._book.incident(self._number)
        rounds = len(claims.runs(incident, at.book.id, step.id))
        while True:
            rounds += 1
            ran = self._commands.run(at.book, step, self._values, incident, rounds)
            if ran is not None:
                self._book.add(self._number, self._hand, ran.entry)
                if ran.stopped:
                    raise LeftError
            until = self._looked(at, step, step.repeat.until) if step.repeat is not None else None
            verified = None
            if step.verify_if is not None and (until is None or until.truth is Truth.TRUE):
                verified = self._looked(at, step, step.verify_if)
            came = outcome(step, rounds, truth_of(until), truth_of(verified))
            if came is not Outcome.AGAIN:
                break
            self._wait(step, rounds)
        judged = verified or until
        if came is Outcome.ASK:
            return self._asked(at, step)
        return (StepState.DONE if came is Outcome.DONE else StepState.FAILED), why(judged, "en") if judged else ""

    def _wait(self, step: Step, rounds: int) -> None:
        assert step.repeat is not None  # only a loop goes round
        seconds, n = step.repeat.every / 1e9, step.repeat.at_most
        self._talk.say(Text(
            f"Round {rounds} of {n}; again in {seconds:g} s. The walk can be left meanwhile, and gone on with later.",
            f"第 {rounds}/{n} 轮；{seconds:g} 秒后再次执行。期间可以离开，之后再继续。"))  # fmt: skip
        self._sleep(seconds)

    def _looked(self, at: At, step: Step, tree: Tree) -> Judged:
        """A condition after the step, by probes that are run now."""
        incident = self._book.incident(self._number)
        names = asked_of(tree, step.verify_with if tree is step.verify_if else ())
        facts = self._sight.facts(names, afresh=True)
        judged = Judge(facts, aligned(subjects_of(incident, at.book), facts)).worked(tree)
        said = {lang: why(judged, lang) for lang in ("en", "zh")}
        self._talk.say(Text(f"Verified by facts: {said['en']}", f"按事实核对：{said['zh']}"))
        if self._sight.live:
            data = {
                "name": ", ".join(names),
                "text": said["en"],
                "runbook": at.book.id,
                "step": step.id,
                "truth": str(judged.truth),
            }
            self._book.add(self._number, self._hand, Entry(Kind.PROBE, data))
        return judged

    def _asked(self, at: At, step: Step) -> tuple[StepState, str]:
        """What came of it, where facts do not tell."""
        incident = self._book.incident(self._number)
        if (entry := self._commands.check(at.book, step, self._values, incident)) is not None:
            self._book.add(self._number, self._hand, entry)
        hint = step.verify.en or step.title.en
        zh = step.verify.in_("zh") or step.title.in_("zh")
        while True:
            said = self._talk.ask(
                Text(f"Did it work? {hint} [y]es, [n]o, [q]uit", f"是否成功？{zh} [y] 是，[n] 否，[q] 离开")
            )
            if said in ("q", "quit", "离开"):
                raise LeftError
            if said in ("y", "yes", "是", "n", "no", "否"):
                return (StepState.DONE if said in ("y", "yes", "是") else StepState.FAILED), ""

    # --- words and marks --------------------------------------------------------------------

    def _judge(self, incident: Incident, book: Runbook, tree: Tree | None) -> Judge | None:
        if tree is None:
            return None
        facts = self._sight.facts(asked_of(tree))
        return Judge(facts, aligned(subjects_of(incident, book), facts))

    def _write(self, at: At, step: Step, state: StepState, text: str, seen: int) -> None:
        """Say how far the step is, if nobody said something of it since `seen`. MovedError otherwise."""
        name = at.book.id
        entry = claims.step_entry(name, step.id, state, text)
        now = self._book.change(self._number, self._hand, lambda i: claims.if_unmoved(i, name, step.id, seen, [entry]))
        word = claims.last(now, name, step.id) if state is StepState.DOING else None
        self._held = (name, step.id, word.seq) if word is not None else None

    def _say_state(self, at: At, step: Step, state: StepState, text: Text) -> None:
        word, name = words.STATES[state], f"{at.book.id}/{step.id}"
        en, zh = (f" ({text.en})", f"（{text.in_('zh')}）") if text.en else ("", "")
        self._talk.say(Text(f"{name}: {word.en}{en}", f"{name}：{word.in_('zh')}{zh}"))

    def _stuck(self, at: At, step: Step) -> None:
        n, name = self._number, f"{at.book.id}/{step.id}"
        self._talk.say(Text(
            f"Step {name} failed, and the runbook does not say what then. gpudiag incident run {n} --step {name} does it "
            f"again, gpudiag incident step {n} {name} skipped goes past it.",
            f"步骤 {name} 失败，手册未说明后续。gpudiag incident run {n} --step {name} 可重做，"
            f"gpudiag incident step {n} {name} skipped 可跳过。"))  # fmt: skip
