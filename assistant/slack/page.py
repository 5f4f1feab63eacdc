"""A message that grows until its budget is spent, and says when something of it was left out."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.slack import rich
from assistant.slack.budget import BLOCKS, CHARACTERS, SECTION, Block, characters, cut
from assistant.slack.mrkdwn import fallback
from assistant.slack.rich import Element, span
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import clean

LEAD = 1_000  # characters of the first line
ATTACHED = Text("This is not all of it: the whole answer is attached as a file.", "以上并非全部：完整内容见附件。")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A message. `text` stands in notifications; `overflow`: the whole must be attached as a file, the last line says so."""

    blocks: list[Block]
    text: str
    overflow: bool = False


class Page:
    """Begins with its first line, which always has room."""

    def __init__(self, lang: str, first: Sequence[Element]) -> None:
        self.lang, self.overflow = lang, False
        self._text = fallback("".join(s["text"] for s in first))
        spans = [{**s, "text": self.cut(s["text"], LEAD)} for s in first]
        self._groups: list[list[Element]] = [rich.section(*spans) or rich.section(span("gpudiag", "bold"))]
        self._used = characters(self._groups)

    @property
    def full(self) -> bool:
        """Whether more than a message holds was added: what follows needs not be made."""
        return self._used > CHARACTERS

    def cut(self, text: str, limit: int) -> str:
        """`text` without what cannot be seen, in at most `limit`; that it was longer is remembered."""
        text = clean(text)
        short = cut(text, limit)
        self.overflow |= short != text
        return short

    def add(self, elements: Sequence[Element], together: bool = False) -> None:
        """Elements of at most a block's size each. `together`: they begin a block of their own."""
        if together:
            self._groups.append([])
        for element in elements:
            last = self._groups[-1]
            if len(self._groups) == 1 or characters(last) + characters(element) > SECTION:
                self._groups.append([element])
            else:
                last.append(element)
            self._used += characters(element)

    def done(self, tail: Sequence[Sequence[Element]] = (), buttons: Sequence[Element] = ()) -> Rendered:
        """The message: as much of the body as fits above `tail` and the buttons, which always stand."""
        closing = rich.block(rich.section(span(ATTACHED.in_(self.lang), "italic")))
        below = [rich.block(elements) for elements in tail if elements]
        row = rich.actions(buttons)
        room = CHARACTERS - characters([*below, *row, closing])
        count = BLOCKS - len(below) - len(row) - 1
        body: list[Block] = []
        for group in self._groups:
            if not group:
                continue
            used = characters(group)
            if used > room or len(body) == count:
                self.overflow = True
                break
            body.append(rich.block(group))
            room -= used
        return Rendered([*body, *below, *([closing] if self.overflow else []), *row], self._text, self.overflow)
