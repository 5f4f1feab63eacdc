"""The row remapping block of nvidia-smi, typed on one line: "remapped rows: 2 correctable 1 uncorrectable, pending: no, failure: no",
and that of retired pages: "retired pages: single bit 0, double bit 3, pending no".

Their parts stand below one heading, and say alone what anything may be: each gets the heading's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from knowledge.lazy import lazy

_REACH = 160  # characters behind the heading
_HEADING = lazy(r"(?<![a-z])(?:row[- ]?remap(?:ping|per|s)?|remapped[- ]rows?)(?![a-z])|行重映射", re.IGNORECASE)
_ERRORS = r"(?:\s*(?:errors?|rows?|remaps?|错误))?"
_TIMES = r"(?:\s*[次行个](?:错误)?)?"
_UN = r"(?:un-?corr(?:ectable|ected)?|不可纠正|无法纠正)"
_CORR = r"(?:corr(?:ectable|ected)?|可纠正)"
_YES_NO = r"\s*[:：=为是]?\s*(?P<{0}>yes|no|none|true|false|[01]|是|否|无|没有)(?![a-z0-9])"
# pending: no | failure occurred 0 | 2 correctable | uncorrectable error: 1
_PART = lazy(
    rf"(?P<un>(?P<un_a>[0-9]{{1,4}}){_TIMES}\s*{_UN}{_ERRORS}|{_UN}{_ERRORS}\s*[:：=为是有]?\s*(?P<un_b>[0-9]{{1,4}}){_TIMES})"
    rf"|(?P<corr>(?P<c_a>[0-9]{{1,4}}){_TIMES}\s*{_CORR}{_ERRORS}|{_CORR}{_ERRORS}\s*[:：=为是有]?\s*(?P<c_b>[0-9]{{1,4}}){_TIMES})"
    rf"|(?:pending|待处理|待生效){_YES_NO.format('pending')}"
    rf"|(?:(?:remapping\s+)?fail(?:ure|ed)?(?:\s+occurr?ed)?|失败){_YES_NO.format('failure')}",
    re.IGNORECASE,
)
_BETWEEN = lazy(
    r"[\s:：,，;；、/|]*(?:(?:and|with|has|shows?|are|is|和|有)\s+)?(?:[的里中]|里面|计数|数量|分别|是|有|状态){0,2}\s*",
    re.IGNORECASE,
)
_PAGES = lazy(
    r"(?<![a-z])(?:retired[- ]pages?|pages? retired|page[- ]retirement)(?![a-z])|(?:已?(?:退役|停用|下线)的?页面?|页面?(?:退役|停用))",
    re.IGNORECASE,
)
_SINGLE, _DOUBLE = r"(?:sbe|single[- ]?bit(?: ecc)?|单比特|单bit)", r"(?:dbe|double[- ]?bit(?: ecc)?|双比特|双bit)"
_PAGES_TIMES = r"(?:\s*(?:[个页]|pages?))?"
# single bit 0 | 双比特 3 个 | 2 double bit | pending: no
_PAGE_PART = lazy(
    rf"(?P<single>(?P<s_a>[0-9]{{1,4}}){_PAGES_TIMES}\s*{_SINGLE}{_ERRORS}|{_SINGLE}{_ERRORS}\s*[:：=为是有]?\s*(?P<s_b>[0-9]{{1,4}}){_PAGES_TIMES})"
    rf"|(?P<double>(?P<d_a>[0-9]{{1,4}}){_PAGES_TIMES}\s*{_DOUBLE}{_ERRORS}|{_DOUBLE}{_ERRORS}\s*[:：=为是有]?\s*(?P<d_b>[0-9]{{1,4}}){_PAGES_TIMES})"
    rf"|(?:pending|待处理|待生效|待退役){_YES_NO.format('pending')}|(?P<none>(?:没有|无|no)\s*(?:pending|待处理|待退役)(?:的?页)?)",
    re.IGNORECASE,
)
_NO = frozenset(("no", "none", "false", "0", "否", "无", "没有"))


def spread(said: str) -> str:
    """`said` with the parts of such a block as clauses of their own; as it is where fewer than two kinds of them are there."""
    for heading, part, clause in ((_HEADING, _PART, _clause), (_PAGES, _PAGE_PART, _page_clause)):
        if (found := heading.search(said)) is not None:
            said = _spread(said, found, part, clause)
    return said


def _spread(said: str, heading: re.Match[str], kinds: re.Pattern[str], clause: Callable[..., str]) -> str:
    parts, at = list[re.Match[str]](), heading.end()
    upto = min(len(said), at + _REACH)
    while part := kinds.match(said, gap.end() if (gap := _BETWEEN.match(said, at, upto)) else at, upto):
        parts.append(part)
        at = part.end()
    if len({p.lastgroup for p in parts}) < 2:
        return said
    han = not said.isascii()
    return f"{said[: heading.start()]}{', '.join(clause(p, han=han) for p in parts)}{said[at:]}"


def _page_clause(part: re.Match[str], *, han: bool) -> str:
    if part["pending"] or part["none"]:
        answer = "no" if part["none"] or part["pending"].casefold() in _NO else "yes"
        return f"{'退役页待处理' if han else 'page retirement pending'} {answer}"
    if part["single"]:
        return f"single bit retired pages {part['s_a'] or part['s_b']}"
    return f"double bit retired pages {part['d_a'] or part['d_b']}"


def _clause(part: re.Match[str], *, han: bool) -> str:
    for name in ("pending", "failure"):
        if part[name]:
            called = {"pending": "行重映射待处理", "failure": "行重映射失败"}[name] if han else f"row remap {name}"
            return f"{called} {'no' if part[name].casefold() in _NO else 'yes'}"
    if part["un"]:
        return f"remapped rows {part['un_a'] or part['un_b']} uncorrectable"
    return f"remapped rows {part['c_a'] or part['c_b']} correctable"
