"""An answer of the conversation as text, Markdown, HTML or the JSON of a diagnosis with the answer beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assistant.render import sheet
from assistant.render.cells import paint_for, terminal_width, wrap
from assistant.render.header import header
from assistant.render.sheet import Code, Fields, Heading, Items, Paragraph, Part, Sheet, Table
from knowledge.language import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from assistant.config import Output
    from assistant.diagnosis import Diagnosis
    from assistant.intent.query import Query
    from assistant.reply import Reply

_WORDS = {
    "hypothetical": Text("Hypothetical: nothing of this was seen.", "假设情形：以下内容并非实际观测。"),
    "asks": Text("Question", "提问"),
    "also": Text("you could ask", "可以继续问"),
    "understood": Text("understood", "理解为"),
    "read_as": Text("{a} read as {b}", "{a} 读作 {b}"),
}


def word(key: str, lang: str) -> str:
    """A word around an answer."""
    return _WORDS[key].in_(lang)


def echo(query: Query) -> str:
    """What was understood, in one line: ``understood: diagnose slow training, pid 4242``."""
    colon = "：" if query.lang == "zh" else ": "
    said = f"{word('understood', query.lang)}{colon}{query.echo.in_(query.lang)}"
    if not query.fixed:
        return said
    fixes = ", ".join(word("read_as", query.lang).format(a=a, b=b) for a, b in query.fixed[:4])
    return f"{said} ({fixes})" if query.lang != "zh" else f"{said}（{fixes}）"


def show(
    reply: Reply, output: Output, tells: Callable[[str], str] = lambda _: "", *, question: str = "",
    query: Query | None = None, verbose: bool = False, empty: Callable[[], Diagnosis] | None = None, alone: bool = False,
) -> str:  # fmt: skip
    """The answer. `question`: what the person is asked below it; `empty` makes the object that JSON needs
    when the answer rests on no diagnosis. `alone`: no talk stands around it, so that it names what it is about."""
    output = output._replace(lang=reply.lang)
    if alone and output.format != "json" and reply.headline and reply.diagnosis is not None:
        about = header(reply.diagnosis, reply.lang, output.now)
        reply = replace(reply, parts=(Paragraph(" · ".join(about)), *reply.parts)) if about else reply
    match output.format:
        case "json":
            base = reply.diagnosis or (empty() if empty else None)
            data = _plain(reply, base, tells, question, query, verbose)
            return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"
        case "markdown":
            return _page(reply, output, tells, question, verbose)
        case "html":
            return _html(reply, output, tells, question, verbose)
        case _:
            return _text(reply, output, tells, question, verbose)


def diagnosed(reply: Reply) -> Diagnosis | None:
    """The diagnosis that is the answer; None when the headline and the blocks are."""
    return None if reply.headline else reply.shown or reply.diagnosis


def _sheet(reply: Reply, question: str) -> Sheet:
    """The blocks as a sheet; the headline is its title."""
    parts: tuple[Part, ...] = reply.parts
    if reply.hypothetical:
        parts = (Paragraph(word("hypothetical", reply.lang)), *parts)
    if question:
        parts = (*parts, Heading(word("asks", reply.lang)), Paragraph(question))
    return Sheet(reply.headline, parts, reply.data)


def _text(reply: Reply, output: Output, tells: Callable[[str], str], question: str, verbose: bool) -> str:
    columns, paint = terminal_width(), paint_for(output.color)
    if (whole := diagnosed(reply)) is not None:
        from assistant.render.diagnosis import show as show_diagnosis

        out = show_diagnosis(whole, output, tells, verbose=verbose)
        below = _sheet(replace(reply, headline=""), question)
        out += sheet.show(below, output) if below.parts else ""
    else:
        out = sheet.show(_sheet(reply, question), output)
    if reply.suggestions:
        out += "\n" + "".join(f"{paint(line, 'dim')}\n" for line in wrap(_offers(reply), columns))
    return out


def _offers(reply: Reply) -> str:
    colon, comma = ("：", "  ") if reply.lang == "zh" else (": ", "  ")
    return f"{word('also', reply.lang)}{colon}{comma.join(reply.suggestions)}"


def _page(reply: Reply, output: Output, tells: Callable[[str], str], question: str, verbose: bool) -> str:
    below = _sheet(reply, question)
    if (whole := diagnosed(reply)) is None:
        return sheet.show(below, output)
    from assistant.render.diagnosis import show as show_diagnosis

    out = show_diagnosis(whole, output, tells, verbose=verbose)
    return out + ("\n" + sheet.show(below, output) if below.parts else "")


def _html(reply: Reply, output: Output, tells: Callable[[str], str], question: str, verbose: bool) -> str:
    below = _sheet(reply, question)
    if (whole := diagnosed(reply)) is None:
        return sheet.show(below, output)
    from assistant.render import html
    from assistant.render.view import view

    page = view(whole, reply.lang, tells, verbose, output.now)
    return html.render(page, sheet.html_parts(below.parts))


def _plain(
    reply: Reply, base: Diagnosis | None, tells: Callable[[str], str], question: str, query: Query | None, verbose: bool
) -> Mapping[str, Any]:
    from assistant.render import json_

    data: dict[str, Any] = json_.plain(base, reply.lang, tells, verbose) if base is not None else {}
    data["query"] = dict(query.plain()) if query is not None else None
    data["reply"] = {
        "lang": reply.lang,
        "headline": _first(reply, base),
        "blocks": blocks(reply.parts),
        "hypothetical": reply.hypothetical,
        "settled": reply.settled,
        "focus": reply.focus or None,
        "question": question or None,
        "suggestions": list(reply.suggestions),
        "data": reply.data,
    }
    return data


def _first(reply: Reply, base: Diagnosis | None) -> str:
    whole = diagnosed(reply) or base
    return reply.headline or (whole.verdict.text.in_(reply.lang) if whole is not None else "")


def blocks(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The blocks as plain data."""
    out: list[dict[str, Any]] = []
    for part in parts:
        match part:
            case Paragraph(text):
                out.append({"type": "paragraph", "text": text})
            case Heading(text):
                out.append({"type": "heading", "text": text})
            case Fields(rows):
                out.append({"type": "fields", "rows": [list(r) for r in rows]})
            case Items(items, numbered):
                out.append({"type": "list", "numbered": numbered, "items": list(items)})
            case Code(lines):
                out.append({"type": "code", "lines": list(lines)})
            case Table(header, rows):
                out.append({"type": "table", "header": list(header), "rows": [list(r) for r in rows]})
    return out
