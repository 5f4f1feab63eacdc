"""A diagnosis for a terminal: the verdict first, then what to do, then why."""

from __future__ import annotations

from assistant.render.cells import Paint, cut, width, wrap
from assistant.render.labels import aside, label, listed
from assistant.render.view import Block, Evidence, Step, View

_STYLE = {
    "ok": ("green", "bold"),
    "degraded": ("yellow", "bold"),
    "unhealthy": ("alarm",),
    "unknown": ("bold",),
    "critical": ("red", "bold"),
    "error": ("red",),
    "warning": ("yellow",),
    "info": ("blue",),
}
_LINE = 240  # columns of a raw line that are always shown: an XID with its process and its message
_COMMANDS = 4  # of one step; more of the same are named, not printed


def render(page: View, columns: int, paint: Paint, verbose: bool = False) -> str:
    """The answer as lines of at most `columns`; commands are never broken, so that they can be copied."""
    return "\n".join(_Page(page, columns, paint, verbose).lines()) + "\n"


def answer(page: View, columns: int, paint: Paint, verbose: bool = False) -> list[str]:
    """The verdict, what to do, and what it stands on: the part that every page of an answer begins with."""
    return _Page(page, columns, paint, verbose).answer()


class _Page:
    def __init__(self, page: View, columns: int, paint: Paint, verbose: bool) -> None:
        self.page, self.columns, self.paint, self.verbose = page, columns, paint, verbose

    def answer(self) -> list[str]:
        """Verdict, actions and findings."""
        p = self.page
        state = self.paint(p.state_label, *_STYLE[p.state])
        head = wrap(p.headline, self.columns, f"{p.state_label}  ", "  ")
        out = [head[0].replace(p.state_label, state, 1), *head[1:]]
        out += [self.paint(x, "dim") for x in wrap(" · ".join(p.about), self.columns, "  ", "  ")] if p.about else []
        if p.steps:
            out += ["", self._heading("do_next"), *(x for n, s in enumerate(p.steps, 1) for x in self._step(n, s))]
        if p.more:
            out += wrap(p.more, self.columns, "  ")
        if p.blocks:
            out += ["", self._heading("found"), *(x for b in p.blocks for x in self._block(b))]
        return out

    def lines(self) -> list[str]:
        """Everything, top to bottom."""
        out = self.answer()
        for key, items, more in self.page.lists:
            out += ["", self._heading(key), *(x for i in items for x in wrap(i, self.columns, "  - ", "    "))]
            if more:
                out.append("  " + self.paint(more, "dim"))
        return [*out, "", *(self.paint(x, "dim") for x in self._footer())] if self.page.footer else out

    def _footer(self) -> list[str]:
        """The parts side by side; one that does not fit begins a line."""
        out = [""]
        for part in self.page.footer:
            joined = f"{out[-1]} | {part}" if out[-1] else part
            out[-1:] = [joined] if width(joined) <= self.columns else [out[-1], part] if out[-1] else [part]
        return [line for row in out for line in wrap(row, self.columns)]

    def _label(self, key: str) -> str:
        return label(key, self.page.lang)

    def _heading(self, key: str) -> str:
        return self.paint(self._label(key), "bold")

    def _step(self, number: int, step: Step) -> list[str]:
        lead = f"  {number}. "
        out = wrap(f"{step.bucket}  {step.text}", self.columns, lead, "     ")
        out[0] = out[0].replace(step.bucket, self.paint(step.bucket, "bold"), 1)
        for command in step.commands[:_COMMANDS]:
            out.append(f"     $ {self.paint(command, 'blue')}")
        if len(step.commands) > _COMMANDS:
            others = self._label("more_lines").format(n=len(step.commands) - _COMMANDS)
            out += wrap(
                self._label("same_command").format(others=others + aside(step.where, self.page.lang)),
                self.columns,
                "       ",
            )
        if step.risk != "safe":
            out += [self.paint(x, "yellow") for x in wrap(step.risk_label, self.columns, "     ")]
        if len(self.page.steps) > 1:
            out += wrap(
                self._label("for") + listed(step.reasons, self.page.lang, ";"), self.columns, "     ", "       "
            )
        for then in step.then:
            out += wrap(self._label("then") + then, self.columns, "     ", "       ")
        out += [f"     {self._label('runbook')}gpudiag runbook show {name}" for name in step.runbooks]
        return out

    def _block(self, b: Block) -> list[str]:
        out = wrap(f"{b.title} · {b.where} · {b.grade}", self.columns, f"  {b.severity_label}  ", "    ")
        out[0] = out[0].replace(b.severity_label, self.paint(b.severity_label, *_STYLE[b.severity]), 1)
        out += wrap(b.impact, self.columns, "    ", "      ") if b.impact else []
        said_by = aside(self._label("said_by") + b.said_by, self.page.lang)
        out += wrap(b.bucket + said_by, self.columns, "    -> ", "       ")
        last = ""
        for e in b.evidence:
            out += self._evidence(e, again=e.place == last)
            last = e.place
        if b.more:
            out.append(self.paint(f"    {self._label('more_lines').format(n=b.more)}", "dim"))
        named = (("explains", b.explains), ("may_explain", b.may_explain), ("would_confirm", b.missing))
        for key, items in (*named, *(("known_issue", (said,)) for said in b.known)):
            if items:
                out += wrap(self._label(key) + listed(items, self.page.lang, ";"), self.columns, "    ", "      ")
        if self.verbose:
            out += wrap(self._label("rule") + b.rule, self.columns, "    ")
            for key, text in (("why", b.why), ("false_positives", b.false_positives)):
                if text:
                    out += wrap(self._label(key) + text, self.columns, "    ", "      ")
            for reference in b.references:
                out.append(f"    {self._label('references')}{reference}")
        return out

    def _evidence(self, e: Evidence, again: bool = False) -> list[str]:
        """One piece; `again`: a long path that the piece above carries is not said twice."""
        if not e.text:
            said = (e.exact or e.raw) if self.verbose else cut(e.raw, max(2 * self.columns, _LINE))
            said += aside(e.note, self.page.lang) if e.note else ""
        else:
            short = self.verbose or width(e.raw) <= self.columns // 2  # a log line is found by its number
            field = e.exact or e.raw if self.verbose else e.raw
            telling = short and field not in e.text and (self.verbose or any(c.isalpha() for c in field))
            said = f"{e.text}  [{field}]" if telling else e.text
        place = f"    {e.place}  "
        word = max(map(width, said.split()), default=0)
        if width(place) > self.columns // 2 or width(place) + word > self.columns:  # a long path stands alone
            place_line = [] if again else [f"    {self.paint(e.place, 'dim')}"]
            return [*place_line, *wrap(said, self.columns, "      ")]
        lines = wrap(said, self.columns, place, "      ")
        lines[0] = lines[0].replace(place, f"    {self.paint(e.place, 'dim')}  ", 1)
        return lines
