"""That a fault came back, told in words: "again after the reboot", "third time this week", 重启后又出现."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.intent import things
from assistant.intent.slots import Named
from assistant.intent.told import TOLD
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, gpu, node
from knowledge.text import excerpt
from rules.life import BACK_AFTER

FACT = BACK_AFTER
_I = re.IGNORECASE
# From what helps least to what should have helped most: of several that were tried the last one counts.
_CURES = (
    ("reload", r"re-?load(?:ed|ing)?(?: of)? (?:the |our )?driver|driver re-?load|重新加载驱动|重载驱动"),
    ("reset", r"(?:gpu[ -])?reset(?:s|ting|ted)?|复位|重置"),
    ("reboot", r"re-?boot(?:s|ed|ing)?|power[- ]?cycl(?:e|ed|ing)|(?:cold|warm) boot|restart(?:ed|ing)? (?:of )?(?:the |our )?(?:node|machine|server|host|box)|重启|断电|冷启动"),
    ("reseat", r"re-?seat(?:ed|ing|s)?|re-?insert(?:ed|ing)?|重新插拔|重新插|重插|插拔"),
    ("replacement", r"rma(?:'?e?d)?(?![a-z])|(?:swap(?:ped|ping)?|replac(?:ed|ing|ement)|chang(?:ed|ing)|new)(?: of)?(?: out)?(?: (?:the|a|our|this|that|it))?(?: (?:gpu|card|board|cable|riser|part))?|换(?:了|过|完)?(?:新|一?[张块])?(?:卡|线|板|gpu|(?![^，。；,;]{0,4}(?:任务|作业|程序|进程|模型|代码|脚本|镜像|容器|框架|数据|用户|人|版本|驱动)))"),
)  # fmt: skip
_ANY = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _CURES)
_AGAIN_EN = r"(?<![a-z])(?:again|back(?! (?:up|online|in (?:service|production|rotation|the (?:pool|cluster))|to normal|alive|and running))|came back(?! (?:up|online|clean|fine|healthy|ok))|comes back|returned|returns|recur\w*|re-?appear\w*|re-?occur\w*|still|once more|anew|even after|every (?:few|couple(?: of)?|other|[2-9]|two|three|four) (?:days?|weeks?|hours?)|same (?:xid|error|fault|thing|gpu|card)|(?:second|third|fourth|fifth|2nd|3rd|[4-9]th) time)(?![a-z])"
_AGAIN_ZH = r"(?:(?<=[后了过])|(?<![\u4e00-\u9fff]))还(?:有|在|会|报|出)|依旧|没解决|没(?:有)?(?:用|效果)(?!过)|又|再次|再度|还是|仍|依然|照样|复发|重现|重新出现|第[二三四五2-9]次"
_AFTER_EN = lazy(
    rf"(?<![a-z])(?:after|since|post|despite|following|even with)\s+(?:[a-z']+\s+){{0,4}}?(?:{_ANY})(?![a-z])", _I
)
_THEN_EN = lazy(
    rf"(?<![a-z])(?:we|i|they|already|ops|support|node|machine|server)\s+(?:[a-z']+\s+){{0,3}}?(?:{_ANY})(?![a-z])[^.;?!]{{0,40}}?(?:,|(?<![a-z])(?:and|but|yet|now|then)(?![a-z]))",
    _I,
)
# rebooted already, still no devices | reseated it twice but xid 79 is back
_DONE_EN = lazy(
    rf"(?:^|[,.;:]\s*)(?:tried |already |just |even )?(?=[a-z-]*(?:ed|t)(?![a-z]))(?:{_ANY})(?![a-z])[^,.;?!]{{0,30}}?(?:[,.;]|(?<![a-z])(?:and|but|yet|now|then)(?![a-z]))",
    _I,
)
_AFTER_ZH = lazy(rf"(?:{_ANY})[^，。；,;？?]{{0,4}}?(?:[之以]?后|了|过|完)|(?:重启|复位)(?=[^，。；,;]{{0,6}}[又仍还])")
_AGAIN = lazy(rf"{_AGAIN_EN}|{_AGAIN_ZH}", _I)
# third time this week | 2 times since monday | 这周第三次
_TIMES = lazy(
    r"(?<![a-z0-9])(?:second|third|fourth|fifth|sixth|2nd|3rd|[4-9]th|[1-9][0-9]th)(?![a-z])[^,.;?!]{0,40}?(?<![a-z])(?:time|this (?:week|month|year|quarter)|today|in a row|in (?:a|one|two|three|[0-9]+) (?:days?|weeks?|months?)|since)(?![a-z])"
    r"|(?<![a-z])(?:twice|thrice|(?:two|three|four|five|several|multiple|[2-9]|[1-9][0-9]) times|[2-9]x)\s+(?:(?:on|for|with|from|by|to) (?:(?:the|that|this|one|same|very|our|my) )*(?:[a-z]+ ?[0-9]*|[0-9]+),?\s+)?(?:this|in|since|today|already|now|within|a|per|over|during|last)(?![a-z0-9])"
    r"|(?<![a-z])(?:twice|thrice|(?:two|three|four|five|several|multiple|[2-9]|[1-9][0-9]) times)\s+on (?:the|that|this|one) (?:very )?(?:same )?(?:gpu|card|node|board|slot)(?![a-z])"
    r"|(?<![a-z])every (?:few|couple(?: of)?|other|[2-9]|two|three|four) (?:days?|weeks?|hours?)(?![a-z])"
    r"|(?<![a-z])(?:keeps? (?:coming back|happening|returning|recurring)|happens? again and again|again and again|over and over)(?![a-z])"
    r"|第\s?[二三四五六七八九十2-9]\s?次|(?:已经|都|[这本上]周|[这本上]个?月|今天|昨天|最近|同一(?:张|块|个)?(?:卡|gpu|节点))[^，。；]{0,14}[两二三四五六七八九十2-9]\s?次|反复(?:出现|掉|报)|三番五次|隔三差五|屡次",
    _I,
)
# even with different jobs | no matter which job runs | 换了三个程序还是 | 不同任务都: a program was changed, and it stays with the GPU
_PROGRAM = r"(?:jobs?|programs?|models?|workloads?|process(?:es)?|codes?|scripts?|containers?|frameworks?|users?|trainings?|applications?|apps?)"
_OTHER_PROGRAM = lazy(
    rf"(?<![a-z])(?:different|diff|various|several|other|another|any|every|new|multiple|two|three|four|which(?:ever)?|what(?:ever)?)\s+(?:kinds? of |unrelated |training |cuda )*{_PROGRAM}(?![a-z])"
    r"|换(?:了|过)?[^，。；,;\s]{0,4}(?:任务|作业|程序|进程|模型|代码|脚本|容器|用户|人)|(?:不同|别|其他|另外?)的?(?:[一几两三四个]+)?(?:任务|作业|程序|进程|模型|代码|脚本|容器|用户|人)|(?:哪个|什么|任何|每个)(?:任务|作业|程序|模型)",
    _I,
)
_ON_OTHERS = lazy(
    r"(?<![a-z])(?:different|other|another|every|all|any|several|multiple|various|both|random)\s+(?:the |of the |[0-9]+ )*(?:gpus?|cards?|nodes?|machines?|servers?|hosts?)(?![a-z])|(?:不同|别|其他|另外?|各|所有|每|多)的?[一几两]?[张块个台]*(?:卡|gpu|节点|机器)|换[了过]?[张块台]?(?:卡|gpu|节点|机器)",
    _I,
)
_STAYS = lazy(
    rf"{_AGAIN_EN}|{_AGAIN_ZH}|(?<![a-z])(?:keeps?|always|each time|every time|no matter|regardless|even (?:with|w|when|if))(?![a-z])|(?<![a-z])same (?:gpu|card|node|slot)|每次|总是|一直|都(?:是|会|报|在|出|一样)|同一[张块个]|一样",
    _I,
)
_OVER = lazy(
    r"(?<![a-z])(?:gone|fine|ok|okay|clean|healthy|disappeared|not (?:come|came) back|no longer|never came back|(?:did|has|have)(?:n't| not) (?:come back|recur\w*|re-?appear\w*|return\w*)|works? again|(?:is|are|was) (?:back|up) (?:again|online|up)|back to normal|again (?:ok|fine))(?![a-z])|好了|正常了|恢复|没再|没有再|不再|未再|消失",
    _I,
)


_DONE = lazy(rf"(?:{_ANY})", _I)
# ok to let it train? | is it fine now | all ok? | 怎么恢复: asked or wished, and not told
_ASKED = lazy(
    r"(?<![a-z])(?:ok|okay|fine|healthy|clean)(?:(?: [a-z]+){0,2}\s*[?？]|\s*$|\s+(?:to|for|if|when|with)(?![a-z]))"
    r"|(?<![a-z])(?:is|are|be|would|should) (?:it|this|that|they)(?: still| now)? (?:ok|okay|fine|healthy|clean)(?![a-z])"
    r"|(?:怎么|如何|怎样|能|可以|会|没有?|未|无法)恢复|(?:ok|fine|好了|正常了|恢复了?|消失了?)[吗么没]",
    _I,
)
# GPU Reset Required | needs a reboot | 需要复位: asked for, and not done
_CURE = "|".join(pattern for _, pattern in _CURES)
_WANTED = lazy(
    rf"(?<![a-z])(?:needs?|requires?|wants?|recommends?)(?: (?:an?|the|gpu|node|full))*[ :]+(?:{_CURE})(?![a-z])"
    rf"|(?<![a-z])(?:{_CURE})(?: (?:is|was|are))? (?:required|needed|recommended|necessary|pending)(?![a-z])"
    r"|(?:需要?|要求|建议|等待|待)(?:复位|重置|重启)",
    _I,
)
# What can be away and come back is a device as well as its fault.
_AWAY = lazy(
    r"(?<![a-z])(?:fell off|fallen off|falls off|dropped off|lost|missing|disappeared|vanished|gone|went (?:down|away|offline)|(?:is|was) (?:down|offline)|not (?:seen|visible|found))(?![a-z])|掉卡|丢卡|掉了?线|丢失|不见|消失|找不到|看不到|没了|宕机|挂了|离线",
    _I,
)
_BACK = lazy(
    r"(?<![a-z])(?:(?:(?:was|is|are|were|got) )?back|c[ao]me(?:s)? back|returned|returns|re-?appear\w*)(?![a-z])|[又再](?:次|度)?(?:能)?(?:回来|出现|看到|看见|认到|识别|找到|能?用|好|上线|可用)(?:了|到)?|重新出现",
    _I,
)
_FAULT = lazy(
    r"(?<![a-z])(?:x?xid|sxid|errors?|faults?|ecc|problem|issue|failures?|hang|message|symptom|(?:same|this|that) thing)(?![a-z])|错误|故障|问题|报错|报警|告警|现象",
    _I,
)
_CLAUSE = lazy(r"[,;.?!，。；？！]|(?<![a-z])(?:and|but)(?![a-z])")


_DEVICE = lazy(
    r"(?<![a-z])(?:the|our|my|that|this|its?|all|both) ?(?:[0-9a-z]+ )?(?:gpus?|cards?|nodes?|machine|server|host|box|boards?|nics?|ports?|links?)\s*(?:[0-9]+\s*)?(?:is|are|was|were|has|had)?\s*$|(?:gpu|卡|节点|机器|服务器|设备|端口|网卡)\s*$",
    _I,
)


_CARD = r"(?:gpus?|cards?|boards?|modules?)"
_PLACE = r"(?:slots?|positions?|risers?|sockets?|bays?)"
_HOUSE = r"(?:slots?|servers?|nodes?|machines?|hosts?|chassis|box(?:es)?)"
_NO = r"(?<![a-z])(?:not|n't|never|doesn't|didn't)\s+(?:[a-z]+\s+)?"
# error followed the gpu to another slot | same card fails in a second server too | swapped 2 and 5, xid is now on 5 | 错误跟着卡走
_WITH_CARD = lazy(
    rf"(?<!not )(?<!n't )(?<![a-z])(?:follow(?:s|ed|ing)?|(?:mov(?:es|ed)|go(?:es)?|went|travel(?:s|ed)?|c[ao]me[s]?) (?:along )?with)\s+(?:the |that |this |our )?(?:same |bad )?{_CARD}(?![a-z])"
    rf"|(?<![a-z])(?:same|this|that|the|it|{_CARD})(?: {_CARD})?[^.;?!]{{0,24}}?(?:in|into|to)(?: an?| the)? ?(?:other|different|new|second|2nd) {_HOUSE}(?![a-z])[^.;?!]{{0,60}}?(?<![a-z])(?:too|also|as well|still|again|same|there)(?![a-z])"
    r"|(?<![a-z])swapp?(?:ed|ing)?\s+(?:<gpu>|gpus?)?\s*[0-9<][^.;?!]{0,24}?(?<![a-z])(?:and|with)(?![a-z])[^.;?!]{0,60}?(?<![a-z])(?:moved|moves|went|goes|now|is now)(?![a-z])"
    r"|(?:跟|随)(?:着|了)?(?:这|那|同一)?[张块]?(?:gpu|显卡|卡)(?:走|转移|移|跑|过去)"
    r"|(?:换|挪|插)[了到去]{0,2}(?:个|一个|另一?个|另一?台|一?台|其他|其它|别的)?(?:插槽|槽位?|机器|服务器|节点|主机)[^。；;？?]{0,12}?(?:还是|还|仍|依然|照样|同样|也|又)",
    _I,
)
# it stays with the slot | a new gpu in the same slot, xid 79 again | 同一个槽位换了卡还是报
_WITH_PLACE = lazy(
    rf"(?<![a-z])(?:stay(?:s|ed)?|remain(?:s|ed)?|is still|follow(?:s|ed)?)\s+(?:with|in|on|at)?\s*(?:the |that |this )?(?:same |old |original )?{_PLACE}(?![a-z])"
    rf"|(?<![a-z])(?:new|another|other|different|second|known good|good|fresh|spare)\s+(?:{_CARD}|one)[^.;?!]{{0,30}}?(?<![a-z])(?:in|into)(?: the| that| this)? ?(?:same|that|this|old|original) {_PLACE}(?![a-z])"
    rf"|{_NO}(?:follow|move with|go with)\s+(?:the |that |this )?{_CARD}(?![a-z])"
    r"|(?:留|停|仍|还)在(?:原来?的?|同一个?|这个|那个)(?:插槽|槽位?|位置)|(?:跟|随)(?:着)?(?:插槽|槽位?)|(?:同一个?|原来?的?|这个)(?:插槽|槽位?|位置)[^。；;]{0,10}?换[^，。；,;]{0,6}?(?:卡|gpu)[^。；;]{0,8}?(?:还|又|仍|也|照样)"
    r"|(?:新|另一?[张块]|换上的)(?:卡|gpu|显卡)[^。；;]{0,8}?(?:同一个?|原来?的?|这个)(?:插槽|槽位?|位置)[^。；;]{0,8}?(?:还|又|仍|也|照样)"
    r"|(?:换(?:了|上|过)?的?新?|新换?的?)(?:卡|gpu|显卡)[^。；;，,]{0,6}(?:还|又|仍|也|照样)[^。；;]{0,20}?(?:同一个?|原来?的?|还是那个|这个)(?:插槽|槽位?|位置)"
    r"|(?:没有?|不)(?:跟|随)着?卡",
    _I,
)


def back_after(text: str) -> str:
    """What a sentence says that a fault came back after, as a value of the fact; empty where it says nothing of the kind."""
    found = _compared(text) or _back_after(_without_devices(text))
    told = _ASKED.sub(_blank, text)
    over = [*_OVER.finditer(told)] if found else []
    # 重启又好了，一周内第二次了: it was over each time
    return "" if over and not _TIMES.search(told, over[-1].end()) else found


def _blank(found: re.Match[str]) -> str:
    """As many blanks, so that places stay what they are."""
    return " " * len(found[0])


def _compared(text: str) -> str:
    """What a change of slot or card told: where the fault goes with the card it is the card, where it stays it is the place."""
    return "replacement" if _WITH_PLACE.search(text) else "moved" if _WITH_CARD.search(text) else ""


def _back_after(text: str) -> str:
    if _AGAIN.search(text):
        found = [m for p in (_AFTER_EN, _THEN_EN, _DONE_EN, _AFTER_ZH) for m in p.finditer(text) if _elsewhere(text, m)]
        names = [name for name, _ in _CURES if any(m[name] for m in found)]
        if names:
            return names[-1]
    return "handled" if _TIMES.search(text) else ""


def with_any_program(text: str) -> bool:
    """Whether a fault is said to stay with the GPU whichever program runs there."""
    stays = _OTHER_PROGRAM.search(text) is not None and _STAYS.search(text) is not None
    return stays and not (_OVER.search(text) or _ON_OTHERS.search(text))


def ended_by_cure(text: str) -> bool:
    """Whether a fault is said to be gone since something was done about it: "gone after the reboot"."""
    said = _WANTED.sub(_blank, _ASKED.sub(_blank, text))
    return _OVER.search(said) is not None and _DONE.search(said) is not None and _TIMES.search(said) is None


def _without_devices(text: str) -> str:
    """The text without "came back" where it is the device that was away and not a fault that came back: its clause names no fault,
    and an earlier part names a device that was away and no code of an error."""
    out, last = [], 0
    for m in _BACK.finditer(text):
        ahead = text[: m.start()]
        clause = [*_CLAUSE.split(ahead)][-1]
        away = [*_AWAY.finditer(ahead)]
        fault = [*_FAULT.finditer(ahead)]
        device = _DEVICE.search(clause) is not None and not _FAULT.search(clause)
        bare = "出现" not in m[0]  # 掉卡，重启后又出现: without a subject it is the fault
        if device or (bare and away and not (fault and fault[-1].start() > away[-1].start())):
            out.append(text[last : m.start()])
            last = m.end()
    return "".join([*out, text[last:]])


def _elsewhere(text: str, cure: re.Match[str]) -> bool:
    """Whether that it came back is said of something else than the cure itself: "reset it again" says nothing of a fault."""
    rest = f"{text[: cure.start()]} | {text[cure.end() :]}"
    return _AGAIN.search(rest) is not None


def told(text: str, named: Named, said: Sequence[Observation]) -> Iterator[Observation]:
    """That it came back, of each GPU that is named, else of the one that nobody named. `said`: what is told beside it; that the
    driver finds nothing after a reboot is no event, and is so in spite of the reboot."""
    stays = any(o.fact in _OF_BOOT and o.value != "ok" for o in said) and not _OVER.search(text)
    if value := back_after(text) or ("reboot" if stays and _boots(text) else ""):
        filled = named.slots
        host = node(filled.node[0] if len(filled.node) == 1 and "[" not in filled.node[0] else "").id
        for called in tuple(map(things.named, filled.gpu)) or (things.UNSAID,):
            yield Observation(FACT, gpu(called, host), value, source=TOLD, excerpt=excerpt(text), origin=Origin.TOLD)


_OF_BOOT = frozenset(["node.driver.state"])


def _boots(text: str) -> bool:
    return (
        any(m["reboot"] for p in (_AFTER_EN, _DONE_EN, _AFTER_ZH) for m in p.finditer(text))
        or _BOOTED.search(text) is not None
    )


_BOOTED = lazy(
    r"(?<![a-z])(?:re-?booted|power[- ]?cycled)\s+(?:it |the \w+ )?(?:already|again|once|twice|several|multiple|many|a few|[2-9])(?![a-z])",
    _I,
)


def without(clauses: Sequence[str]) -> tuple[str, ...]:
    """The clauses that say more than that something was done about it, or that it came back."""
    patterns = (_AFTER_EN, _THEN_EN, _DONE_EN, _AFTER_ZH, _TIMES)
    return tuple(c for c in clauses if not (_short(c) and any(p.search(f"{c},") for p in patterns)))


_SHORT = 10  # words
_HAN = 14  # characters


def _short(clause: str) -> bool:
    return len(re.findall(r"[a-z]+", clause, _I)) <= _SHORT and len(re.findall("[\u4e00-\u9fff]", clause)) <= _HAN


def of_fault(told: Sequence[Observation]) -> bool:
    """Whether something was told that can come back: an event, or the state of hardware."""
    return any(o.fact != FACT and o.subject.up(Scope.NODE) is not None for o in told)
