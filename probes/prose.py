"""What a person wrote beside an output: an XID that a sentence tells of, and that the output says nothing of.

A sentence has words of its own on both sides of the code. One that denies it, says that it is dealt with, or speaks of XIDs in
general (a manual, a condition) tells of none; lines of logs and rows of tables are read by their own parsers.
"""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.lazy import lazy
from probes.base import Line, lines_of

# we saw XID 79 on GPU 3 yesterday      there was an xid 48 on GPU 5, can we use it?      昨晚 GPU 3 报了 XID 79
_CODE = lazy(r"(?i)(?<![\w.])xids?[ :#=]{0,3}(?:error |code )?(\d{1,3})(?![\w.])")
_OTHER = lazy(r"[|{}<>]|NVRM|^\s*[\w .-]{1,60}\s*[:=]\s|^\[|\d\d:\d\d:\d\d|\w\(.*\)\s*:|^\s+\S")
_NONE = lazy(
    r"(?i)\b(?:no|not|never|without|none|zero|any|if|when|means?|manual|docs?|documentation|example|e\.g|such as|replac\w+|fixed|solved|resolved|repaired|"
    r"swapped|rma|list of|alerts? on|grep|rules?|watch(?:es|ing)? for|look(?:s|ing)? for|check(?:s|ing|ed)? for)\b|n't\b|没有|没|未|无 ?xid|已更换|已修|如果|若|换了|手册|文档|例如|解决"
)
_WORDS = lazy(r"[A-Za-z]{2,}|[\u4e00-\u9fff]")
_LEAST = 3  # words beside the code
_LONG = 500  # characters of a line


def xids(text: str) -> Iterator[tuple[Line, int]]:
    """The XIDs that sentences tell of, with their lines."""
    if "xid" not in text.lower():
        return
    for line in lines_of(text):
        own = line.text[:_LONG]
        found = _CODE.search(own)
        if found is None or _OTHER.search(own) or _NONE.search(own):
            continue
        if len(_WORDS.findall(own[: found.start()] + own[found.end() :])) >= _LEAST:
            yield line, int(found[1])
