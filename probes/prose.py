"""What a person wrote beside an output: an XID that a sentence tells of, and that the output says nothing of.

A sentence has words of its own on both sides of the code. One that denies it, says that it is dealt with, or speaks of XIDs in
general (a manual, a condition) tells of none; lines of logs and rows of tables are read by their own parsers.
"""

from __future__ import annotations

from collections.abc import Iterator

from knowledge.identity import normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Origin, Source, gpu, node
from knowledge.text import excerpt
from probes.base import Line, lines_of
from probes.whole import XID_BESIDE

# we saw XID 79 on GPU 3 yesterday      there was an xid 48 on GPU 5, can we use it?      昨晚 GPU 3 报了 XID 79
_CODE = lazy(r"(?i)(?<![\w.])xids?[ :#=]{0,3}(?:error |code )?(\d{1,3})(?![\w.])")
_OTHER = lazy(r"[|{}<>]|NVRM|^\s*[\w .-]{1,60}\s*[:=]\s|^\[|\d\d:\d\d:\d\d|\w\(.*\)\s*:|^\s+\S")
_NONE = lazy(
    r"(?i)\b(?:no|not|never|without|none|zero|any|if|when|means?|manual|docs?|documentation|example|e\.g|such as|replac\w+|fixed|solved|resolved|repaired|"
    r"swapped|rma|list of|alerts? on|grep|rules?|watch(?:es|ing)? for|look(?:s|ing)? for|check(?:s|ing|ed)? for)\b|n't\b|没有|没|未|无 ?xid|已更换|已修|如果|若|换了|手册|文档|例如|解决"
)
_WORDS = lazy(r"[A-Za-z]{2,}|[\u4e00-\u9fff]")
# it came back after a reboot: what was is not what is
_OVER = lazy(
    r"(?i)\b(?:back|again|recovered|healthy|fine|ok|after (?:an? |the )?re(?:boot|set|start)|rebooted|reset)\b|恢复|正常|重启后|已重启"
)
_GPU = lazy(
    r"(?i)\bGPU[ #:]{0,2}(\d{1,2})(?![\w:.]\w)|(?<![\w.:])((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b"
)
_NEAR = 2  # lines that belong to a sentence
_LEAST = 1  # words beside the code
_LONG = 500  # characters of a line


def told(text: str, name: str, host: str) -> Iterator[Observation]:
    """What sentences tell of XIDs: an event as told, where they name the GPU and say nothing of a cure; else that it was said."""
    lines = text.split("\n")
    for line, code in xids(text):
        source, shown = Source("prose", name, line.number), excerpt(line.text.strip(), 200)
        found = _GPU.search(line.text[:_LONG])
        near = "\n".join(part[:_LONG] for part in lines[max(0, line.number - 1 - _NEAR) : line.number + _NEAR])
        if found is None or _OVER.search(near):
            yield Observation(XID_BESIDE, node(host), code, source=source, origin=Origin.TOLD, excerpt=shown)
            continue
        device = gpu(f"index:{int(found[1])}" if found[1] else normalise_pci(found[2]), host)
        event = Event(code, {"reporter": "the words that were given", "text": shown})
        yield Observation("xid_reported", device, event, source=source, origin=Origin.TOLD, excerpt=shown)


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
