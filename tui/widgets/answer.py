"""An answer as rows: the verdict, what to do, the findings with their evidence folded, what could be asked next.

The words are those of the command line: the same `View` and the same sheets, with the labels of `assistant.render`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from assistant.render.cells import cut, pad, width
from assistant.render.labels import aside, label, listed
from assistant.render.sheet import Code, Fields, Heading, Table, text_part
from tui.tones import MARKS, Tone, of_severity, of_state
from tui.widgets.rows import Pen, Row, Span, Stop

if TYPE_CHECKING:
    from assistant.render.sheet import Part
    from assistant.render.view import Block, Evidence, Step
    from assistant.session.shown import Shown

OPEN, CLOSED = "▾", "▸"
_USABLE = {"yes": Tone.OK, "no": Tone.ERROR, "impaired": Tone.WARNING, "not_yet": Tone.WARNING, "unknown": Tone.UNKNOWN}
_LONG = 14  # sections of a sheet that begin open; of longer sheets the later ones are folded
_FIELD = 40  # characters of a raw field that is shown beside its sentence; a log line is found by its number
_LINE = 240  # columns of a raw line, as on the command line
_COMMANDS = 4  # of one step, as on the command line

Words = Callable[[str, str], str]


class Layout:
    """Lays one answer out. `turned`: folds that are not as they begin; `live`: the newest, whose chips have letters."""

    def __init__(
        self, shown: Shown, columns: int, turned: Collection[str], t: Words, *, live: bool, full: bool
    ) -> None:
        self.shown, self.t, self.live, self.full, self._turned = shown, t, live, full, turned
        self.lang = shown.lang
        self.pen = Pen(columns)

    def rows(self) -> tuple[list[Row], list[Stop]]:
        """Everything, top to bottom."""
        s, pen = self.shown, self.pen
        if s.note:
            pen.text(s.note, Tone.WARNING, lead=(Span("◇ ", Tone.WARNING),))
        if s.view is not None:
            self._verdict()
            self._steps()
            self._found()
            self._lists()
        elif s.headline:
            tone = _USABLE.get(s.usable)
            mark = f"{MARKS[tone]} " if tone is not None else ""
            pen.text(s.headline, Tone.STRONG, lead=(Span(mark, tone),) if tone is not None else ())
        self._parts(s.parts)
        if s.view is not None:
            self._foot()
        self._asked()
        self._suggested()
        return pen.rows, pen.stops

    # --- the verdict, and what to do --------------------------------------------------------

    def _verdict(self) -> None:
        v = self.shown.view
        assert v is not None
        tone = of_state(v.state)
        lead = (Span(f"{MARKS[tone]} {v.state_label}", tone), Span("  "))
        self.pen.text(v.headline, Tone.STRONG, lead=lead, hang=2)
        if v.about:
            self.pen.text(" · ".join(v.about), Tone.DIM, hang=2)

    def _steps(self) -> None:
        v = self.shown.view
        assert v is not None
        if not v.steps:
            return
        self._heading("do_next")
        for n, step in enumerate(v.steps, 1):
            self._step(n, step, alone=len(v.steps) == 1)
        if v.more:
            self.pen.text(v.more, Tone.DIM, lead=(Span("  "),))

    def _step(self, number: int, step: Step, *, alone: bool) -> None:
        pen, lang = self.pen, self.lang
        pen.text(step.text, lead=(Span(f"{number}. "), Span(step.bucket, Tone.STRONG), Span("  ")), hang=3)
        for command in step.commands[:_COMMANDS]:
            self._command(command)
        if len(step.commands) > _COMMANDS:
            others = label("more_lines", lang).format(n=len(step.commands) - _COMMANDS)
            said = label("same_command", lang).format(others=others + aside(step.where, lang))
            pen.text(said, Tone.DIM, lead=(Span("   "),))
        if step.risk != "safe":
            pen.text(step.risk_label, Tone.WARNING, lead=(Span(f"   {MARKS[Tone.WARNING]} ", Tone.WARNING),))
        if not alone:
            self._named("for", listed(step.reasons, lang, ";"), indent=3)
        for then in step.then:
            self._named("then", then, indent=3)
        for name in step.runbooks:
            stop = pen.stop(Stop("goto", ("incidents", name), f"gpudiag runbook show {name}"))
            lead = (Span("   "), Span(label("runbook", lang), Tone.DIM))
            pen.text(name, Tone.ACCENT, lead=lead, hang=5, stop=stop)

    def _command(self, command: str) -> None:
        stop = self.pen.stop(Stop("code", None, command))
        self.pen.text(command, Tone.ACCENT, lead=(Span("   $ ", Tone.DIM),), stop=stop)

    # --- findings ---------------------------------------------------------------------------

    def _found(self) -> None:
        v = self.shown.view
        assert v is not None
        if not v.blocks:
            return
        self._heading("found")
        for n, (block, subject) in enumerate(zip(v.blocks, self.shown.subjects, strict=True)):
            tone = of_severity(block.severity)
            said = f"{block.title} · {block.where} · {block.grade}"
            stop = Stop("fold", f"block {n}", said, subject.question)
            lead = (Span(f"{MARKS.get(tone, '·')} {block.severity_label}", tone), Span("  "))
            if self._fold(stop, said, lead, begins_open=n == 0):
                self._block(block, subject.finding)

    def _block(self, b: Block, finding: str) -> None:
        pen, lang = self.pen, self.lang
        if b.impact:
            pen.text(b.impact, lead=(Span("    "),), hang=6)
        said_by = aside(label("said_by", lang) + b.said_by, lang)
        lead = (Span("    → ", Tone.DIM), Span(b.bucket), Span("" if said_by.startswith("（") else " "))
        pen.text(said_by.strip(), Tone.DIM, lead=lead, hang=6)
        last = ""
        for e in b.evidence:
            self._evidence(e, again=e.place == last)
            last = e.place
        if b.more:
            pen.text(label("more_lines", lang).format(n=b.more), Tone.DIM, lead=(Span("    "),))
        named = (("explains", b.explains), ("may_explain", b.may_explain), ("would_confirm", b.missing))
        for key, items in (*named, *(("known_issue", (said,)) for said in b.known)):
            if items:
                self._named(key, listed(items, lang, ";"))
        if self.full:
            self._named("rule", b.rule)
            self._named("why", b.why)
            self._named("false_positives", b.false_positives)
            for reference in b.references:
                self._named("references", reference)
        if finding:
            stop = pen.stop(Stop("goto", ("findings", finding), b.title))
            said = self.t("how it was concluded", "推理过程")
            pen.text(said, Tone.ACCENT, lead=(Span("    → ", Tone.DIM, stop),), stop=stop)

    def _evidence(self, e: Evidence, *, again: bool) -> None:
        """One piece: where it stands, and what it says. `again`: the place above is not said twice."""
        said = e.text or ((e.exact or e.raw) if self.full else cut(e.raw, _LINE))
        said += aside(e.note, self.lang) if e.note and not e.text else ""
        field = e.exact or e.raw if self.full else e.raw
        telling = self.full or (len(field) <= _FIELD and any(map(str.isalpha, field)))
        if e.text and field and field not in e.text and telling:
            said += f"  [{field}]"
        if not again and 4 + width(e.place) + 2 + width(said) <= self.pen.columns:
            self.pen.text(said, lead=(Span("    "), Span(e.place, Tone.DIM), Span("  ")))
            return
        if not again:
            self.pen.text(e.place, Tone.DIM, lead=(Span("    "),))
        self.pen.text(said, lead=(Span("      "),))

    # --- what is not known, notes, sheets ---------------------------------------------------

    def _lists(self) -> None:
        v = self.shown.view
        assert v is not None
        if v.lists:
            self.pen.blank()
        for key, items, more in v.lists:
            title = f"{label(key, self.lang)} · {len(items)}"
            # Where nothing is known, that is the answer.
            shown = v.state == "unknown" and key in ("undecided", "could_not_see")
            if self._fold(Stop("fold", key, "\n".join(items)), title, (), begins_open=shown):
                for item in items:
                    self.pen.text(item, lead=(Span("    "), Span("- ", Tone.DIM)))
                if more:
                    self.pen.text(more, Tone.DIM, lead=(Span("    "),))

    def _foot(self) -> None:
        v = self.shown.view
        assert v is not None
        self.pen.blank()
        if not self.full and (v.blocks or v.lists):
            stop = self.pen.stop(Stop("more"))
            said = self.t(
                "everything: all evidence, why, what is mistaken for it", "全部：所有证据、原因、容易误判之处"
            )
            self.pen.text(said, Tone.DIM, lead=(Span(f"{CLOSED} ", Tone.DIM, stop),), stop=stop)
        if v.footer:
            self.pen.text(" | ".join(v.footer), Tone.DIM)

    def _parts(self, parts: tuple[Part, ...]) -> None:
        """A sheet: a heading folds what stands under it, where the sheet is long."""
        long = sum(isinstance(p, Heading) for p in parts) > _LONG
        shown, number = True, 0
        for part in parts:
            if isinstance(part, Heading):
                number += 1
                self.pen.blank()
                stop = Stop("fold", f"section {number}", part.text)
                shown = self._fold(stop, part.text, (), begins_open=not long or number == 1, tone=Tone.STRONG)
            elif shown:
                self._part(part, indent=2 if number else 0)

    def _part(self, part: Part, *, indent: int) -> None:
        pen = self.pen
        made = text_part(part, pen.columns - indent)
        if not made:
            return
        if not (pen.rows and pen.rows[-1] and indent and _is_title(pen.rows[-1])):
            pen.blank()
        if isinstance(part, Fields):
            self._fields(part, indent)
        elif isinstance(part, Code):
            stop = pen.stop(Stop("code", None, "\n".join(part.lines)))
            pen.lines((line[4:] for line in made), Tone.ACCENT, indent=indent + 2, stop=stop)
        elif isinstance(part, Table):
            pen.lines(made[:1], Tone.DIM, indent=indent)
            pen.lines(made[1:], indent=indent)
        else:
            pen.lines(made, indent=indent)

    def _fields(self, part: Fields, indent: int) -> None:
        """Names and values, side by side."""
        kept = [(name, value) for name, value in part.rows if value]
        wide = min(self.pen.columns * 2 // 5, max(width(name) for name, _ in kept))
        for name, value in kept:
            lead = (Span(" " * indent), Span(pad(name, wide), Tone.DIM), Span("  "))
            self.pen.text(value, lead=lead, hang=indent + wide + 2)

    # --- what is asked, and what could be ---------------------------------------------------

    def _asked(self) -> None:
        s = self.shown
        if not s.question:
            return
        self.pen.blank()
        self.pen.text(s.question, Tone.STRONG, lead=(Span("◆ ", Tone.ACCENT),))
        if self.live:
            self.pen.chips(
                [(c.text, Stop("consent" if s.terms is not None else "choice", c)) for c in s.choices], letters=True
            )

    def _suggested(self) -> None:
        if self.shown.suggestions:
            self.pen.blank()
            offers = [(text, Stop("chip", text, text)) for text in self.shown.suggestions]
            self.pen.chips(offers, letters=self.live)

    # --- pieces -----------------------------------------------------------------------------

    def _heading(self, key: str) -> None:
        self.pen.blank()
        self.pen.text(label(key, self.lang), Tone.DIM)

    def _named(self, key: str, text: str, *, indent: int = 4) -> None:
        if text:
            self.pen.text(text, lead=(Span(" " * indent), Span(label(key, self.lang), Tone.DIM)), hang=indent + 2)

    def _fold(
        self, stop: Stop, text: str, lead: tuple[Span, ...], *, begins_open: bool, tone: Tone = Tone.PLAIN
    ) -> bool:  # fmt: skip
        """The title of something that folds; whether it is open."""
        shown = begins_open != (stop.value in self._turned)
        number = self.pen.stop(stop)
        sign = Span(f"{OPEN if shown else CLOSED} ", Tone.DIM, number)
        self.pen.text(text, tone, lead=(sign, *(s._replace(stop=number) for s in lead)), hang=4, stop=number)
        return shown


def _is_title(row: Row) -> bool:
    return bool(row) and row[0].text in (f"{OPEN} ", f"{CLOSED} ")
