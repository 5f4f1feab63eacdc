"""What stands around a tool's output when a person hands it over: prompts, quotes, line numbers, marks, a pager's lines.

It is blanked, not taken out, so that line numbers stay those of the file. What the tool printed is never touched: a prompt is a
line with a user and a host or a dollar sign, a quote stands before nearly every line, a mark is an arrow at a line's end. Line
numbers are those of ``cat -n``, ``nl`` and ``grep -n``: every line has the next one, its headings too. The index column of a table
that counts up starts behind a heading, at zero, or again with each sample.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from knowledge.language import Text
from knowledge.lazy import lazy

_ESCAPES = lazy(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# root@n1:~# nvidia-smi -q     [ana@n1 ~]$ dcgmi diag -r 1     (base) ana@n1:/data$     $ nvidia-smi
_PROMPT = lazy(
    r"(?m)^[ \t]{0,8}(?:\([\w.-]{1,40}\) )?(?:[\w.-]{1,60}@[\w.-]{1,80}[: ][^\n$#%>]{0,120}[$#%>]|"
    r"\[[\w.-]{1,60}@[^\]\n]{1,120}\][$#%]|[$❯➜])([ \t]+[^\s][^\n]{0,400})?[ \t]*$"
)
_ROOT = lazy(
    r"\A\s{0,40}# ?(?:sudo )?(?:nvidia-smi|dcgmi|nvidia-bug-report|lspci|dmesg|rocm-smi|amd-smi|ibstat|scontrol|kubectl)\b[^\n]*"
)
_PAGER = lazy(r"(?m)^(?:--More--[^\n]{0,40}|\(END\)|lines \d{1,9}-\d{1,9}(?:/\d{1,9})?[^\n]{0,20}|~)$")
_FENCE = lazy(r"(?m)^[ \t]{0,3}(?:```|~~~)[\w-]{0,20}[ \t]*$")
_MARK = lazy(r"(?m)[ \t]+(?:<[-=]{2,}(?![-=]*>)|<{3,}(?![A-Za-z]{1,20}>{3})|[←⇐◀⬅])[^\n]*$")
_QUOTE = lazy(r"(?m)^[ \t]{0,3}>[ \t]?")
# |     7\t# gpu    pwr  gtemp|     cat -n, nl        |7:# gpu    pwr  gtemp|     grep -n
_NUMBER = lazy(r"(?m)^( {0,7})([1-9]\d{0,6})([:\t]|  |$)")
_MOST = 0.9  # of the lines that are not blank: so many must carry what is taken for a quote sign

_NAMES = {
    "prompt": Text("lines of a shell", "shell 提示行"), "pager": Text("lines of a pager", "分页器的行"),
    "fence": Text("code fences", "代码围栏"), "mark": Text("marks at the end of lines", "行尾标记"),
    "quote": Text("quote signs", "引用符号"), "number": Text("line numbers", "行号"), "colour": Text("colours", "颜色"),
}  # fmt: skip


class Bare(NamedTuple):
    """A text without what stands around it, and what that was."""

    text: str
    found: Counter[str]

    @property
    def words(self) -> Text:
        """``text around the output was left out: lines of a shell x2``; empty when there was none."""
        if not self.found:
            return Text("")
        en = ", ".join(f"{_NAMES[k].en} x{n}" for k, n in sorted(self.found.items()))
        zh = "、".join(f"{_NAMES[k].zh} x{n}" for k, n in sorted(self.found.items()))
        return Text(f"text around the output was left out: {en}", f"已略去输出以外的文字：{zh}")


def bare(text: str, commands: bool = True) -> Bare:
    """`text`, with blanks in place of what a person or a terminal put around it.

    Without `commands` a prompt with a command behind it stays: some tools' outputs name their device there and nowhere else.
    """
    found: Counter[str] = Counter()

    def cut(kind: str, pattern: re.Pattern[str], kept: str = "") -> None:
        nonlocal text
        text, times = pattern.subn(kept, text)
        if times:
            found[kind] += times

    if "\x1b[" in text:
        cut("colour", _ESCAPES)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) >= 2 and sum(map(bool, map(_QUOTE.match, lines))) >= _MOST * len(lines):
        cut("quote", _QUOTE)
        lines = [line for line in text.splitlines() if line.strip()]
    if _counted(lines):
        cut("number", _NUMBER)
    if "@" in text or "$" in text or "❯" in text or "➜" in text:
        asked = 0

        def prompt(m: re.Match[str]) -> str:
            nonlocal asked
            keeps = bool(m[1]) and not commands
            asked += not keeps
            return m[0] if keeps else ""

        text = _PROMPT.sub(prompt, text)
        found["prompt"] += asked
    if commands:
        cut("prompt", _ROOT)
    cut("pager", _PAGER)
    if "```" in text or "~~~" in text:
        cut("fence", _FENCE)
    if "<" in text or "←" in text or "⇐" in text or "◀" in text or "⬅" in text:
        cut("mark", _MARK)
    return Bare(text, +found)


def _counted(lines: list[str]) -> bool:
    """Whether every line begins with a number that is one more than that of the line before, in a column of its own.

    The last line may be cut. Numbers begin at 1; only those of ``cat -n``, with a tab behind blanks and digits, may begin later:
    somebody has cut a part out of its output.
    """
    printed = [line for line in lines if not any(p.match(line) for p in (_PROMPT, _FENCE, _PAGER))]
    found = [m for line in printed if (m := _NUMBER.match(line))]
    if len(printed) < 4 or len(printed) - len(found) > (_NUMBER.match(printed[-1]) is None):
        return False
    if any(int(b[2]) - int(a[2]) != 1 for a, b in pairwise(found)):
        return False
    behind = {m[3] for m in found} - {""}  # nothing stands behind the number of a blank line
    if len(behind) != 1 or (int(found[0][2]) != 1 and not (behind == {"\t"} and found[0][1])):
        return False
    return (behind == {":"} and not found[0][1]) or len({m.end(2) for m in found}) == 1
