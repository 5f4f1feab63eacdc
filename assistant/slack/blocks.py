"""An answer as a Slack message: the verdict, at most three findings, what to do next, what could not be seen, buttons.

What is shown of a diagnosis is `assistant.render.view`'s selection, as for text, Markdown and HTML; a message only shows
less of it, and then says that the whole is attached. Buttons carry opaque ids, never facts or commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assistant.render.labels import aside, colon, label, listed
from assistant.render.reply import diagnosed, word
from assistant.slack import parts, rich
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import Element, span
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.render.sheet import Part
    from assistant.render.view import Block, Evidence, Step, View
    from assistant.reply import Reply

Ticket = Callable[[str], str]  # kind of a button -> the id that it carries
FINDINGS = 3
COMMANDS = 4  # of one step, as on a terminal
LINE, NAME, PROSE = 500, 300, 600  # characters: of a quoted line, of a name, of a sentence of ours
CODE = 1_000  # of the commands of one step
FIELD = 60  # characters of a raw field that is shown behind its sentence
EXTRA = 8  # lines of what else to do
PRICE = 50  # characters of the cost on a button, which takes 75 in all

WHY, EVIDENCE, WHAT_IF, RUN_NEXT, EXPORT = "why", "evidence", "what_if", "run_next", "export"
_BUTTONS = {
    WHY: Text("Why", "为什么"), EVIDENCE: Text("Evidence", "证据"), WHAT_IF: Text("What if", "假如"),
    RUN_NEXT: Text("Run next", "运行下一项"), EXPORT: Text("Export", "导出"),
}  # fmt: skip
_MORE = Text("{n} more findings", "另有 {n} 项发现")
_ONE_MORE = Text("1 more finding", "另有 1 项发现")
_MORE_STEPS = Text("{n} more: {names}", "另有 {n} 项：{names}")
_MORE_UNSEEN = Text("{n} more", "另有 {n} 项")
_WAITS = Text("Waits for consent: ", "等待同意：")


class Offer(NamedTuple):
    """A probe that waits for consent: what it is, and its cost (``about 2 min``), both in our words."""

    what: Text
    cost: Text


def render(
    reply: Reply, ticket: Ticket, *, tells: Callable[[str], str] = lambda _: "", question: str = "",
    offer: Offer | None = None,
) -> Rendered:  # fmt: skip
    """An answer. `tells` names the inputs that would give a fact; `question`: what the person is asked below it."""
    lang = reply.lang
    whole = diagnosed(reply)
    page, tail = (Page(lang, [span(reply.headline, "bold")]), []) if whole is None else _diagnosed(whole, lang, tells)
    if reply.hypothetical:
        page.add(rich.section(span(word("hypothetical", lang), "italic"), span("\n")))
    parts.add(page, reply.parts)
    if question:
        tail.append(rich.section(span(f"{word('asks', lang)}{colon(lang)}", "bold"), span(page.cut(question, PROSE))))
    if offer is not None:
        tail.append(_offered(page, offer))
    if reply.suggestions:
        tail.append(_suggested(page, reply.suggestions))
    return page.done(tail, _buttons(lang, ticket, offer) if reply.diagnosis is not None or whole is not None else [])


def diagnosis(
    found: Diagnosis, lang: str, ticket: Ticket, *, tells: Callable[[str], str] = lambda _: "",
    offer: Offer | None = None,
) -> Rendered:  # fmt: skip
    """A diagnosis that nobody asked a question about."""
    from assistant.reply import Reply

    return render(Reply(lang, "", diagnosis=found), ticket, tells=tells, offer=offer)


def sheet(title: str, body: Sequence[Part], lang: str) -> Rendered:
    """A page of an explanation (`assistant.render.sheet.Sheet`): no buttons."""
    page = Page(lang, [span(title, "bold")])
    parts.add(page, body)
    return page.done()


def _diagnosed(found: Diagnosis, lang: str, tells: Callable[[str], str]) -> tuple[Page, list[list[Element]]]:
    """The page, and what stands at its end whatever else has room."""
    from assistant.render.view import view

    shown = view(found, lang, tells)
    page = Page(lang, [span(f"{shown.state_label}{colon(lang)}", "bold"), span(shown.headline, "bold")])
    if shown.about:
        page.add(rich.section(span(page.cut(" · ".join(shown.about), PROSE))))
    _findings(page, shown)
    return page, [_unseen(page, shown)]


def _findings(page: Page, shown: View) -> None:
    waiting = list(shown.steps)
    done: list[Step] = []
    for block in shown.blocks[:FINDINGS]:
        step = next((s for s in waiting if s.bucket == block.bucket and set(block.findings) & set(s.findings)), None)
        if step is not None:
            waiting.remove(step)
            done.append(step)
        page.add(_finding(page, block, step), together=True)
    if (rest := len(shown.blocks) - FINDINGS) > 0:
        page.overflow = True
        said = (_ONE_MORE if rest == 1 else _MORE).in_(page.lang).format(n=rest)
        page.add(rich.section(span(said, "italic"), span("\n")))
    _next(page, shown, done, waiting)


# --- a finding ----------------------------------------------------------------------------


def _finding(page: Page, b: Block, step: Step | None) -> list[Element]:
    """Severity, title and subject; the line that tells most; the action, and its command to copy."""
    about = f"\n{page.cut(b.where, NAME)} · {b.grade}"
    impact = f"\n{page.cut(b.impact, NAME)}" if b.impact else ""
    out = rich.section(
        span(f"{b.severity_label}{colon(page.lang)}", "bold"), span(page.cut(b.title, NAME), "bold"), span(about + impact)
    )  # fmt: skip
    out += _quoted(page, b.evidence[0]) if b.evidence else []
    if b.known:
        out += rich.section(span(page.cut(label("known_issue", page.lang) + b.known[0], PROSE)))
    out += rich.section(span(f"→ {b.bucket}", "bold"), span(f"  {page.cut(b.action, PROSE)}"))
    return out + (_commands(page, step) if step is not None else [])


def _quoted(page: Page, e: Evidence) -> list[Element]:
    said = e.text or e.raw
    if e.text and e.raw and len(e.raw) <= FIELD and e.raw not in e.text and any(c.isalpha() for c in e.raw):
        said = f"{e.text}  [{e.raw}]"  # a short field of the source, which says more than the sentence
    note = aside(e.note, page.lang) if e.note else ""
    return rich.quote(span(page.cut(e.place, NAME), "code"), span(f" {page.cut(said, LINE)}{page.cut(note, NAME)}"))


def _commands(page: Page, step: Step) -> list[Element]:
    out: list[Element] = []
    if step.commands:
        out += parts.fitting(page, step.commands[:COMMANDS], CODE)
    if len(step.commands) > COMMANDS:
        page.overflow = True
        count = label("more_lines", page.lang).format(n=len(step.commands) - COMMANDS)
        others = count + aside(page.cut(step.where, NAME), page.lang)
        out += rich.section(span(label("same_command", page.lang).format(others=others)))
    if step.risk != "safe":
        out += rich.section(span(step.risk_label, "italic"))
    return out


# --- what to do next ----------------------------------------------------------------------


def _next(page: Page, shown: View, done: Sequence[Step], waiting: Sequence[Step]) -> None:
    """What follows the actions above, and the actions that stand under none of the findings shown."""
    lang = page.lang
    lines: list[list[Element]] = []
    for step in done:
        lines += [[span(page.cut(text, PROSE))] for text in step.then]
        lines += [
            [span(label("runbook", lang)), span(f"gpudiag runbook show {name}", "code")] for name in step.runbooks
        ]
    if len(lines) > EXTRA:
        page.overflow = True
    following = rich.bullets(lines[:EXTRA])
    if following or waiting:
        page.add([*rich.section(span(label("do_next", lang), "bold")), *following], together=True)
    for step in waiting:
        reasons = page.cut(label("for", lang) + listed(step.reasons, lang, ";"), PROSE)
        said = rich.section(
            span(f"→ {step.bucket}", "bold"), span(f"  {page.cut(step.text, PROSE)}"), span(f"\n{reasons}")
        )
        page.add([*said, *_commands(page, step)], together=True)
    if shown.more_steps:
        page.overflow = True
        names = page.cut(", ".join(shown.more_steps), NAME)
        said = rich.section(span(_MORE_STEPS.in_(lang).format(n=len(shown.more_steps), names=names), "italic"))
        page.add(said)


# --- the end ------------------------------------------------------------------------------


def _unseen(page: Page, shown: View) -> list[Element]:
    """What could not be seen, in one line."""
    lang = page.lang
    if not shown.unseen:
        return []
    items = list(shown.unseen)
    if shown.unseen_more:
        items.append(_MORE_UNSEEN.in_(lang).format(n=shown.unseen_more))
    said = page.cut(listed(items, lang, ";"), PROSE)
    return rich.section(span(f"{label('could_not_see', lang)}{colon(lang)}", "bold", "italic"), span(said, "italic"))


def _offered(page: Page, offer: Offer) -> list[Element]:
    lang = page.lang
    what, cost = page.cut(offer.what.in_(lang), NAME), page.cut(offer.cost.in_(lang), NAME)
    return rich.section(span(_WAITS.in_(lang), "bold"), span(what + aside(cost, lang)))


def _suggested(page: Page, suggestions: Sequence[str]) -> list[Element]:
    comma = "  " if page.lang == "zh" else ", "
    lead = f"{word('also', page.lang)}{colon(page.lang)}"
    return rich.section(span(lead + page.cut(comma.join(suggestions), PROSE), "italic"))


def _buttons(lang: str, ticket: Ticket, offer: Offer | None) -> list[Element]:
    kinds = [WHY, EVIDENCE, WHAT_IF, *([RUN_NEXT] if offer is not None else []), EXPORT]
    words = {kind: _BUTTONS[kind].in_(lang) for kind in kinds}
    if offer is not None:
        words[RUN_NEXT] += _price(offer, lang)
    return [rich.button(kind, words[kind], ticket(kind), "primary" if kind == RUN_NEXT else "") for kind in kinds]


def _price(offer: Offer, lang: str) -> str:
    """The cost as it stands on the button; a long or strange one stands in the line above alone."""
    cost = clean(offer.cost.in_(lang))
    plain = len(cost) <= PRICE and all(c.isalnum() or c in " .,;%/()+-~（）。，、" for c in cost)
    return aside(cost, lang) if cost and plain else ""
