""" "Again": what is different from the look before."""

from __future__ import annotations

from assistant.dialogue import Turn, _running
from assistant.render.labels import label
from assistant.render.sheet import Heading, Items, Paragraph, Part
from assistant.reply import Reply
from knowledge.language import Text

SHOWN = 5  # lines of one kind


def answer(turn: Turn) -> Reply:
    """The verdict of now, and everything that changed since the look before; pure."""
    from assistant.changes import Now, as_before, compare
    from assistant.render.changes import page, plain

    d, before = turn.diagnosis, turn.before
    assert d is not None  # the session looked again
    assert before is not None
    if (running := _running.again(turn)) is not None:
        return running
    now = Now(
        turn.host, d.as_of, d.ruleset, str(d.verdict.state), str(d.verdict.usable), d.findings, d.undecided, d.facts
    )
    changes = compare(as_before(before, turn.host), now)
    said = d.verdict.text.in_(turn.lang)
    words = Text("Something changed. ", "有变化。") if changes else Text("Nothing changed. ", "没有变化。")
    shown = page(changes, turn.lang)
    parts: list[Part] = [
        Paragraph(f"{shown.title}: {shown.head}" if turn.lang != "zh" else f"{shown.title}：{shown.head}")
    ]
    for section in shown.sections:
        if changes or section.key != "general":
            parts += [Heading(section.title)] if section.title else []
            rest = len(section.items) - SHOWN
            more = (label("more_lines", turn.lang).format(n=rest),) if rest > 0 else ()
            parts.append(Items((*section.items[:SHOWN], *more)))
    return Reply(
        turn.lang, words.in_(turn.lang) + said, tuple(parts), d, settled=d.settled,
        suggestions=tuple(t.in_(turn.lang) for t in (Text("why?", "为什么？"), Text("what next?", "下一步做什么？"))),
        data={"changes": plain(changes, turn.lang)},
    )  # fmt: skip
