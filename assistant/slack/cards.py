"""The other messages: a question for consent, how far a look is, an error, an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assistant.render.labels import colon
from assistant.slack import parts, rich
from assistant.slack.blocks import FINDINGS, LINE, NAME, PROSE, Ticket
from assistant.slack.budget import cut
from assistant.slack.page import Page, Rendered
from assistant.slack.rich import Element, span
from knowledge.language import Text
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.incidents.fold import Incident, Linked
    from assistant.incidents.progress import StepView
    from knowledge.errors import GpudiagError

AGREE, NO, CANCEL, NOTE, WALK, CLOSE = "agree", "no", "cancel", "note", "walk", "close"
_BUTTONS = {
    AGREE: Text("Agree", "同意"), NO: Text("No", "不同意"), CANCEL: Text("Cancel", "取消"),
    NOTE: Text("Note", "备注"), WALK: Text("Walk", "按手册处理"), CLOSE: Text("Close", "关闭"),
}  # fmt: skip
_COST = Text("cost", "代价")
_ERROR = Text("Not done", "未完成")
_LOOKING = Text("looking: probes {done}/{total}", "正在查看：探针 {done}/{total}")
_WAITING = Text(", waiting for {names}", "，等待 {names}")
_NAMED = 4  # probes that are named while they are waited for


def button(kind: str, lang: str, ticket: Ticket, style: str = "") -> Element:
    """One of ours, in words of ours."""
    return rich.button(kind, _BUTTONS[kind].in_(lang), ticket(kind), style)


def consent(
    what: Text, cost: Text, lang: str, ticket: Ticket, *, why: Text | None = None, command: str = ""
) -> Rendered:
    """May `what` run? `cost` in words; `command`: what would run, as it would."""
    page = Page(lang, [span(what.in_(lang), "bold")])
    page.add(rich.section(span(f"{_COST.in_(lang)}{colon(lang)}", "bold"), span(page.cut(cost.in_(lang), PROSE))))
    if why is not None:
        page.add(rich.section(span(page.cut(why.in_(lang), PROSE))))
    if command:
        parts.code(page, (command,))
    return page.done((), [button(AGREE, lang, ticket, "primary"), button(NO, lang, ticket)])


def looking_words(done: int, total: int, waiting: Sequence[str], lang: str) -> str:
    """How far a look is, in one line."""
    said = _LOOKING.in_(lang).format(done=done, total=total)
    if waiting:
        comma = "、" if lang == "zh" else ", "
        names = comma.join(waiting[:_NAMED]) + (f"{comma}…" if len(waiting) > _NAMED else "")
        said += _WAITING.in_(lang).format(names=names)
    return said


def status(who: str, asked: str, line: str, lang: str, ticket: Ticket | None = None) -> Rendered:
    """How a turn stands: whose it is, what was asked, one line. Without `ticket` it cannot be cancelled (any more)."""
    words = cut(" ".join(clean(asked).split()), NAME)
    page = Page(lang, [span(f"{clean(who)}{colon(lang)}"), span(words, "bold"), span("\n"), span(line)])
    return page.done((), [button(CANCEL, lang, ticket)] if ticket is not None else [])


def error(trouble: GpudiagError, lang: str) -> Rendered:
    """What went wrong, where, and what to do about it."""
    first, _, rest = trouble.in_(lang).partition("\n")
    page = Page(lang, [span(f"{_ERROR.in_(lang)}{colon(lang)}", "bold"), span(first)])
    page.add(rich.section(span(page.cut("\n".join(line.strip() for line in rest.split("\n")), PROSE))))
    return page.done()


def incident(what: Incident, lang: str, ticket: Ticket) -> Rendered:
    """How an incident stands: status, severity, owner, findings, the next step."""
    from assistant.incidents import pages
    from assistant.incidents.progress import progress

    page = Page(lang, [span(pages.heading(what, lang), "bold")])
    page.add(rich.section(span(page.cut(pages.state_line(what, lang), PROSE))))
    _found(page, what)
    following = next((v.next for v in progress(what) if v.next is not None), None) if what.is_open else None
    if following is not None:
        _step(page, what, following)
    kinds = [NOTE, *([WALK] if following is not None else []), *([CLOSE] if what.is_open else [])]
    return page.done((), [button(kind, lang, ticket) for kind in kinds])


def _found(page: Page, what: Incident) -> None:
    """The roots first, in the order in which they came in; of symptoms what has room."""
    from assistant.incidents import words

    def line(f: Linked) -> list[Element]:
        said = words.finding_words(f, page.lang, named=len(what.hosts) > 1)
        return [span(f"{words.grade(f.severity, page.lang)}{colon(page.lang)}", "bold"), span(page.cut(said, LINE))]

    ordered = sorted(what.findings, key=lambda f: f.role != "root")
    page.add(rich.bullets([line(f) for f in ordered[:FINDINGS]]))
    if rest := ordered[FINDINGS:]:
        page.overflow = True
        said = Text(f"{len(rest)} more", f"另有 {len(rest)} 项").in_(page.lang)
        page.add(rich.section(span(said, "italic")))


def _step(page: Page, what: Incident, following: StepView) -> None:
    from assistant.incidents import pages
    from assistant.incidents.progress import values_of

    lead = Text("next", "下一步").in_(page.lang)
    title = page.cut(pages.step_title(following, page.lang), NAME)
    number = f"{following.number}. " if following.number else ""
    page.add(rich.section(span(f"\n{lead}{colon(page.lang)}", "bold"), span(f"{number}{title}")))
    if command := pages.command_of(following, values_of(what)):
        parts.code(page, (command,))
