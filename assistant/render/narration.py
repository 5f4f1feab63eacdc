"""A narration below an answer, in the format of the answer. The answer itself keeps every byte.

Text and Markdown get a section behind the end. A page of HTML and an object of JSON have one end, so it is put in ahead of that.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from assistant.render import sheet
from assistant.render.sheet import Heading, Paragraph, Part, Sheet
from knowledge.language import Text
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assistant.config import Output
    from assistant.narrate.asks import Retold
    from assistant.narrate.narrator import Withheld

_OTHER = Text(
    "In short (put together by {model}; verdict and actions are above):",
    "简述（由 {model} 编排；结论与措施见上文）：",
)
_DRAFT = Text("Summary, drafted by {model} (ours is above):", "摘要草稿，由 {model} 撰写（我们的摘要见上文）：")
_WITHHELD = Text("narration withheld: {why}", "未显示叙述：{why}")


def heading(model: str, lang: str, *, draft: bool = False) -> str:
    """Who wrote it. `model`: as it is set; what a server calls itself is never shown."""
    return (_DRAFT if draft else _OTHER).in_(lang).format(model=clean(model))


def withheld(found: Withheld, lang: str) -> str:
    """One line: why nothing is shown."""
    return _WITHHELD.in_(lang).format(why=excerpt(found.said.in_(lang)))


def parts(found: Retold, model: str, *, draft: bool = False) -> tuple[Part, ...]:
    """Heading and text."""
    return Heading(heading(model, found.lang, draft=draft)), Paragraph(clean(found.text))


def below(found: Retold, model: str, output: Output) -> str:
    """What follows an answer in text or Markdown."""
    said = sheet.show(Sheet("", parts(found, model)), output)
    return "\n" + said if output.format == "markdown" else said


def page(text: str, found: Retold, model: str, *, draft: bool = False, ahead: str = "") -> str:
    """The page `text` with a section ahead of `ahead`, else of its foot. Nothing in a page says so itself: it is escaped."""
    mark = next(m for m in (ahead, "<footer>", "</main>") if m and m in text)
    head, _, tail = text.rpartition(mark)
    return f"{head}{sheet.html_parts(parts(found, model, draft=draft))}\n{mark}{tail}"


def data(text: str, plain: Mapping[str, Any]) -> str:
    """The JSON object `text` with one more field, the last."""
    said = json.dumps(plain, ensure_ascii=False)
    head = text.rstrip("\n").removesuffix("}")
    if head.endswith("\n"):
        return f'{head[:-1]},\n "narration": {said}\n}}\n'
    return f'{head}, "narration": {said}}}\n'


def plain(found: Retold, model: str) -> dict[str, Any]:
    """What stands there."""
    return {"text": clean(found.text), "model": clean(model), "cites": list(found.cites)}
