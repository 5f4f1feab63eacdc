"""Which kind of thing a "which" asks for: GPUs, processes, ranks, nodes, jobs; and whether for those that may be used."""

from __future__ import annotations

import re

from knowledge.lazy import lazy
from knowledge.observation import Scope

# The first that the sentence names is meant: "which process on this node".
_KINDS = (
    (
        Scope.PROCESS,
        lazy(r"(?<![a-z0-9_])(?:process(?:es)?|pids?|program|app|user|who(?:'s|se)?)(?![a-z0-9_])|进程|程序|谁|用户"),
    ),
    (Scope.RANK, lazy(r"(?<![a-z0-9_])(?:ranks?|tasks?)(?![a-z0-9_])")),
    (Scope.JOB, lazy(r"(?<![a-z0-9_])jobs?(?![a-z0-9_])|作业|任务")),
    (Scope.NIC, lazy(r"(?<![a-z0-9_])(?:nics?|hcas?|ports?|adapters?|interfaces?)(?![a-z0-9_])|网卡|网口|端口")),
    (
        Scope.GPU,
        lazy(r"(?<![a-z0-9_])(?:gpus?|cards?|devices?|accelerators?|ones?)(?![a-z0-9_])|卡(?![住死顿])|显卡|gpu"),
    ),
    (Scope.NODE, lazy(r"(?<![a-z0-9_])(?:nodes?|hosts?|machines?|servers?|box(?:es)?)(?![a-z0-9_])|节点|机器|主机|台")),
)
_USABLE = lazy(
    r"\b(?:ok|okay|fine|healthy|good|usable|safe|left|can (?:i|we)|still (?:use|run|work))\b|还能|能用|可用|可以用|好的|正常|没问题|没事"
)
_ALSO = lazy(r"^\s*\S+\s*(?:and|or|,|/|和|与|、)\s*(?:the\s+)?(\S+)")  # "which host and NIC"
_WHICH = lazy(r"\b(?:which|what)\b|哪")
_COUNT = r"(?:[0-9]{1,2}|two|three|four|five|six|seven|eight)"
_OTHERS = lazy(
    rf"\b(?:the |all |my )?(?:other|remaining|rest of (?:the|my))\s+(?:\w+\s+)?(?:gpus?|cards?|ones|devices?|nodes?|ranks?)\b|\bthe (?:others|rest)\b"
    rf"|\b(?:the|all|my|those) (?:other|remaining) {_COUNT}\b|\bthe {_COUNT} (?:other|remaining)s?\b|\bother {_COUNT}\b"
    r"|(?:其他|其它|其余|别的|剩下|剩余|另外)的?\s*(?:[0-9]{1,2}|[一二两三四五六七])\s*[张块个台]"
    r"|(?:其他|其它|其余|别的|剩下|剩余|另外)的?\s*(?:gpu|显?卡|节点|机器|几[张块个台]|的)",
    re.IGNORECASE,
)


# "xid 94 on one gpu but the others are ok, do I need to reboot the node": told of them, not asked
_OTHERS_TOLD = lazy(
    r"(?<!are )(?<!is )(?<!are all )\b(?:others|the rest|(?:the |all )?(?:other|remaining)\s+(?:\w+\s+)?(?:gpus?|cards?|ones|devices?|nodes?|ranks?)|other [0-9a-z]{1,5})\s+(?:all\s+)?(?:(?:are|is|look|seem|run|work)s?\s+)?(?:all\s+)?(?:ok(?:ay)?|fine|good|healthy|clean|normal(?:ly)?|well)\b(?!\s*\?)"
    r"|(?:其他|其它|其余|别的|剩下|另外)的?[^，。,;；?？吗么]{0,6}?(?:都|全)?(?:正常|没问题|没事|好的|是好的)(?![吗么?？])",
    re.IGNORECASE,
)


def asks_of_others(text: str) -> bool:
    """Whether it is asked about those that are not the one that the talk is about: "can the other GPUs keep running?"."""
    return _OTHERS.search(_OTHERS_TOLD.sub(" ", text)) is not None


def kind_asked(text: str) -> Scope | None:
    """The scope of the things that are asked for; None where the sentence names no kind."""
    said = text.casefold()
    hits = [(found.start(), scope) for scope, pattern in _KINDS if (found := pattern.search(said))]
    return min(hits, key=lambda hit: hit[0])[1] if hits else None


def kinds_asked(text: str) -> tuple[Scope, ...]:
    """The kinds of a question for several things at once: "which host and which NIC?"; one where it asks for one."""
    asked = _WHICH.split(text.casefold())[1:] or [text]
    parts = (p for part in asked for p in (part, *_ALSO.findall(part)))
    return tuple(dict.fromkeys(kind for part in parts if (kind := kind_asked(part)) is not None))


def asks_usable(text: str) -> bool:
    """Whether those are asked for that nothing is wrong with: "which GPUs can I still use?"."""
    return _USABLE.search(text.casefold()) is not None
