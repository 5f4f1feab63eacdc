"""Where and when a job fails and where it does not: "fine on one node, fails on two", "since the driver update", 单机好好的两机就挂.

Such a contrast decides more than any reading: what differs between the two sides is where the cause is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from assistant.intent import things
from assistant.intent.slots import Named
from assistant.intent.told import TOLD
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, Subject, Value, node
from knowledge.text import excerpt

_I = re.IGNORECASE
_N = r"(?:two|three|four|several|multiple|many|more|both|[2-9]|[1-9][0-9]+)"
_HOSTS = r"(?:nodes?|machines?|hosts?|servers?|box(?:es)?)"
_TROUBLE = r"(?:fail\w*|hang\w*|hung|crash\w*|time[sd]?[ -]?out\w*|dies|died|stuck|stall\w*|error\w*|break\w*|abort\w*|does(?:n't| not) work|not work\w*|no go|drops?|collapses?|slow\w*|freez\w*|never starts?)"
_FINE = r"(?:works?|working|fine|ok|okay|good|runs?|running|passes|no (?:problem|issue|error)s?|perfect\w*|normal\w*|full speed|healthy)"
_ONE = rf"(?:(?:an?|one|1|single|same|each|every)[ -]?{_HOSTS}|intra[ -]?node|(?:within|inside) (?:an? |one |1 |the |each )?[ -]?{_HOSTS})"
# fine within a node, and not between several
_ACROSS_EN = (
    lazy(rf"(?<![a-z])(?:{_FINE}[^.;]{{0,40}}?(?:{_ONE})|(?:{_ONE})[^.;]{{0,30}}?{_FINE})(?![a-z])", _I),
    lazy(
        rf"(?<![a-z])(?:{_TROUBLE}[^.;]{{0,60}}?(?:(?:on|over|across|between|with|using|for|at|when) (?:the )?{_N}(?:[ -]?{_HOSTS})?(?![a-z0-9])|multi[ -]?nodes?|inter[ -]?nodes?|cross[ -]?nodes?|across nodes|between nodes)"
        rf"|(?:(?:on|over|across|between|with|using|at) (?:the )?{_N}(?: [a-z]+)?(?:[ -]?{_HOSTS})?|multi[ -]?nodes?|inter[ -]?nodes?|cross[ -]?nodes?|across nodes|between nodes)[^.;]{{0,30}}?{_TROUBLE})(?![a-z])",
        _I,
    ),
)
_ACROSS_ZH = lazy(
    r"(?:单机|单节点|单台|一台|一个节点|节点内|机内)[^。；]{0,10}?(?:好|正常|没问题|没事|可以|能跑|跑得|OK|通)[^。；]{0,16}?(?:[两双多2-9二三四]\s?(?:个|台)?\s?(?:机|节点|台)|跨(?:机|节点)|节点间|机间)[^。；]{0,12}?(?:挂|失败|报|超时|卡|不行|不通|慢|崩|timeout|hang|error|出错|死)"
    r"|(?:[两双多2-9二三四]\s?(?:个|台)?\s?(?:机|节点|台)|跨(?:机|节点)|节点间)[^。；]{0,12}?(?:挂|失败|报|超时|卡|不行|不通|慢|崩|timeout|hang|error|出错|死)[^。；]{0,14}?(?:单机|单节点|单台|一台|节点内)[^。；]{0,8}?(?:好|正常|没问题|没事|可以|能跑|OK)",
    _I,
)
# only one of the machines
_ONLY_EN = lazy(
    rf"(?<![a-z])(?:only|just|always)(?: on| with| at)? (?:this |that |the |one |a )?(?:same )?(?:<node>|{_HOSTS}|one of (?:the|our) {_HOSTS})[^;]{{0,80}}?(?:(?:other|rest|else|every)[^;]{{0,30}}?{_FINE}|{_FINE}[^;]{{0,40}}?(?:other|rest|elsewhere|every))"
    rf"|{_FINE}[^;]{{0,20}}?(?:on|at) (?:all |every |any |the )+(?:the )?other[ a-z]{{0,20}}(?:but|and|,)[^;]{{0,40}}?(?:<node>|this|that|one) ?(?:{_HOSTS})?",
    _I,
)
# on only one node out of 32, same code | only on node 7, the other 31 run it fine
_ONE_OF = lazy(
    rf"(?<![a-z])(?:only|just|always)?\s*(?:on |at |in )?(?:only |just |exactly )?(?:one|1|a single)\s+(?:{_HOSTS}\s+)?(?:out )?of (?:the |our |all )?(?:[0-9]{{1,5}}|{_N})\s*(?:other )?(?:{_HOSTS})?(?![a-z])[^;]{{0,60}}?(?<![a-z])(?:same|identical|others?|rest|elsewhere)(?![a-z])"
    rf"|(?<![a-z])(?:same|identical) (?:code|job|image|model|script|program|binary|container)(?![a-z])[^;]{{0,60}}?(?<![a-z])(?:only|just)?\s*(?:on |at |in )?(?:only |just )?(?:one|1|a single)\s+(?:{_HOSTS}\s+)?(?:out )?of (?:the |our |all )?[0-9]{{1,5}}"
    rf"|(?<![a-z])(?:the )?(?:other|remaining|rest of the)\s+[0-9]{{1,5}}\s+(?:{_HOSTS})(?![a-z])[^;]{{0,40}}?{_FINE}"
    r"|[0-9]{1,5}\s*(?:台|个节点|节点)(?:机器|服务器)?(?:里|中|里面|当中)?[^。；]{0,8}?(?:只有|就|仅)[^。；]{0,3}?(?:一|1)\s*(?:台|个)[^。；]{0,30}?(?:一样|相同|同样|同一)"
    r"|(?:其他|其余|别的|另外)\s*[0-9]{1,5}\s*(?:台|个节点|节点)[^。；]{0,16}?(?:正常|没问题|没事|都好|不报|能跑)"
    r"|(?:代码|程序|镜像|任务)(?:都|是|完全)*(?:一样|相同)[^。；]{0,20}?(?:只有|就|仅)[^。；]{0,4}?(?:一|1|这|那|某)\s*(?:台|个节点)",
    _I,
)
_ONLY_ZH = lazy(
    r"(?:换|迁|挪|移|搬|放|调度)[了到去至过]{0,2}[^，。；]{0,2}?(?:一台|台|个|另一?[台个]|别的|其他|[a-dA-D])\s?(?:机器|节点|服务器|主机)[^，。；]{0,6}?(?:就|都)(?:好了?|没事|正常|不(?:报|挂|慢|卡|掉|nan)|没(?:问题|再)|能跑)|"
    r"(?:只有|只在|唯独|就)[^。；]{0,6}?(?:<node>|[这那某一](?:个|台)?(?:节点|机器|服务器|台))[^。；]{0,24}?(?:其他|其余|别的|换(?:到|个))[^。；]{0,12}?(?:正常|没问题|没事|好|快)"
    r"|(?:其他|其余|别的)(?:节点|机器|服务器)[^。；]{0,8}?(?:正常|没问题|没事|好)[^。；]{0,8}?(?:只有|就|唯独)[^。；]{0,4}?(?:<node>|[这那某一](?:个|台))",
)
_CHANGED = r"(?:upgrad\w*|updat\w*|chang\w*|switch(?:ed|ing)|mov(?:ed|ing)|migrat\w*|install\w*|replac\w*|add(?:ed|ing)|rais(?:ed|ing)|roll(?:ed|ing)?[ -]?out|bump\w*|patch\w*)"
_SINCE_EN = lazy(
    rf"(?<![a-z])(?:since|after|ever since|once|from the moment)\s+(?:(?:[a-z']+\s+){{0,3}}?(?:{_CHANGED}|(?<=since the )new|(?<=since our )new)(?P<a>[^,.;?]{{0,50}})|(?P<b>[^,.;?]{{0,40}}?)\b(?:upgrade|update|change|switch|move|migration|installation|rollout|patch)\b)",
    _I,
)
_SINCE_ZH = lazy(
    r"(?:自从)?(?:(?:换(?!算)|升级?|更新|改(?!善)|迁移|搬|加(?![载速权入密])|安?装(?!载)|扩容?)[了到成过上]?(?P<a>[^，。；,;]{0,16}?)(?:之后|以后|以来|后|起)|(?P<b>[^，。；,;]{1,12}?)(?:升级|更新|迁移|搬|加进来|换)(?:到[^，。；,;]{0,10}?)?(?:之后|以后|以来|后|起)|只(?:换|改|加|动|升级)[了过]?(?P<c>[^，。；,;]{1,16}))"
)
_PLACE = r"(?:halls?|racks?|rooms?|rows?|pods?|aisles?|sites?|buildings?|data ?cent(?:er|re)s?|clusters?)"
# moved to another hall | same job, different rack: the machines are other ones
_MOVED = lazy(
    rf"(?<![a-z])(?:(?:mov|migrat|relocat|shift|transferr?)(?:e|ed|es|ing)?[^,.;?]{{0,40}}?\s(?:to|into)|same [a-z]+[,;]?(?: but)?(?: in| on)?)\s+(?:an?other|(?:a )?different|(?:the |a )?new|the other)\s+{_PLACE}(?![a-z])"
    r"|(?:换|搬|挪|迁|移|调)[了到去至过]{0,2}[^，。；,;]{0,6}?(?:机柜|机房|机架|机列|柜子|园区|集群)|(?:另|不同|别)[^，。；,;]{0,3}?(?:机柜|机房|机架|园区|集群)",
    _I,
)
# What was changed, by the words about it; what nothing names is something else.
_WHAT = (
    ("driver", r"driver|驱动"),
    ("storage", r"data ?sets?|nfs|lustre|ceph|gpfs|weka|storage|file ?system|checkpoints?|bucket|s3|数据集?|存储|文件系统|检查点|盘"),
    ("nodes", r"nodes?|machines?|servers?|hosts?|节点|机器|服务器|台"),
    ("network", r"switch(?:es)?|cables?|network|nics?|fabric|firmware of the|网络|交换机|网卡|线"),
    ("software", r"nccl|cuda|torch|pytorch|vllm|sglang|python|transformers|megatron|deepspeed|image|container|library|libraries|version|版本|镜像|容器|框架|库"),
    ("system", r"kernel|os|bios|firmware|ubuntu|rhel|内核|系统|固件"),
    ("settings", r"config\w*|settings?|code|batch|flags?|env\w*|model|配置|代码|参数|模型"),
)  # fmt: skip
_STEP = r"(?:steps?|iter(?:ation)?s?|batch(?:es)?|epochs?|samples?|global step)"
_DIES = r"(?:hangs?|hung|stuck|stops?|freez\w+|crash\w*|dies|fails?|stalls?|nan|oom)"
_ALWAYS = r"(?:every (?:time|run|single time)|each (?:time|run)|always|again|consistently|reproducibl\w+|same|without fail|in (?:all|every) runs?)"
_STEP_EN = lazy(
    rf"(?<![a-z]){_DIES}[^.;]{{0,24}}?(?:at|on|around|after|near|by) (?:the )?(?:same )?{_STEP}(?: (?:number )?#?[0-9][0-9,k]*)?[^.;]{{0,24}}?{_ALWAYS}|{_ALWAYS}[^.;]{{0,20}}?{_DIES}[^.;]{{0,20}}?{_STEP}(?![a-z])|{_DIES}[^.;]{{0,20}}?(?:the )?(?:exact )?same {_STEP}(?![a-z])",
    _I,
)
_STEP_ZH = lazy(
    r"(?:每次|总是|总|都|一到|必然?)(?![^，。；]{0,10}?(?:每隔?|隔)[跑训过]?\s?[0-9])[^，。；]{0,10}?(?:第\s?)?[0-9]+\s?(?:个)?(?:步|step|iter\w*)[^，。；]{0,8}?(?:卡|挂|死|崩|停|报错)|(?<!每跑)(?<!每)(?<!每隔)(?<!每训)(?<!每过)(?<!隔)(?<!每跑 )(?<!每 )(?<!每隔 )(?<!隔 )(?:第\s?)?(?<![0-9])[0-9]+\s?(?:个)?\s?(?:步|step|iter\w*)[^，。；]{0,4}?(?:必|每次|总|都|就)[^，。；]{0,3}?(?:卡|挂|死|崩|停)|同一(?:步|个step|个batch)[^，。；]{0,6}?(?:卡|挂|死|崩|停)",
    _I,
)
_BEHIND_EN = (
    lazy(r"(?<![a-z])rank\s*#?(?P<r>[0-9]{1,6})[^.;]{0,40}?(?:enqueued|completed|seq\w*|at|work|op\w*|collective|is on|on)\D{0,12}(?P<a>[0-9]{2,12})[^.;]{0,40}?(?:others?|rest|every(?:one|body)|peers|all)[^.;0-9]{0,30}(?P<b>[0-9]{2,12})", _I),
    lazy(r"(?:others?|rest|everyone|peers)[^.;0-9]{0,30}(?P<b>[0-9]{2,12})[^.;]{0,20}?(?:but|,|and|while)[^.;]{0,10}?rank\s*#?(?P<r>[0-9]{1,6})\D{0,40}?(?P<a>[0-9]{2,12})", _I),
)  # fmt: skip
_ABSENT = lazy(
    r"(?<![a-z])rank\s*#?(?P<r>[0-9]{1,6})\s+(?:[a-z]+\s+){0,2}?(?:never|did(?:n't| not)|has(?:n't| not)|does(?:n't| not)|is missing|is late|missing|late|absent|not)\s*(?:ever )?(?:reach\w*|enter\w*|join\w*|arriv\w*|call\w*|show\w*|in|at|for|to|from|$)|rank\s*(?P<z>[0-9]{1,6})\s*(?:号)?\s*(?:一直|始终|还)?(?:没有?|未|迟迟不)[^，。；]{0,4}?(?:到|进|加入|参与|来|调用)",
    _I,
)


SINCE = "job.fails.since_change"


class Contrast(NamedTuple):
    """One thing that a sentence tells, and the words that tell it."""

    fact: str
    value: Value
    words: str


def contrasts(said: str) -> Iterator[Contrast]:
    """What a sentence (marked: slots stand as ``<node>``) tells of where and when something fails."""
    low, zh = said.casefold(), not said.isascii()
    one = _ACROSS_EN[0].search(said)
    many = _ACROSS_EN[1].search(said) if one is not None else None
    if one is not None and many is not None and not _inside(one, many):
        yield Contrast("job.fails.across_nodes", True, f"{one[0]} {many[0]}")
    elif zh and (across := _ACROSS_ZH.search(said)):
        yield Contrast("job.fails.across_nodes", True, across[0])
    elif only := _ONE_OF.search(said) or _ONLY_EN.search(said) or (_ONLY_ZH.search(said) if zh else None):
        yield Contrast("job.fails.on_one_node", True, only[0])
    if step := _STEP_EN.search(said) or (_STEP_ZH.search(said) if zh else None):
        yield Contrast("job.fails.at_same_step", True, step[0])
    since = [_SINCE_EN] if any(word in low for word in ("since", "after", "once", "from the moment")) else []
    for m in (m for p in [*since, *([_SINCE_ZH] if zh else [])] if (m := p.search(said)) is not None):
        kind = next((name for name, words in _WHAT if re.search(rf"(?<![a-z])(?:{words})(?![a-z])", m[0], _I)), "")
        if kind:
            yield Contrast(SINCE, kind, m[0])
            break
    else:
        if moved := _MOVED.search(said):
            yield Contrast(SINCE, "nodes", moved[0])


def _inside(one: re.Match[str], many: re.Match[str]) -> bool:
    return many.start() <= one.start() and one.end() <= many.end() and many[0] == one[0]


def behind(said: str) -> Contrast | None:
    """The rank that the others wait for, where a sentence names it."""
    if "rank" not in said.casefold():
        return None
    for m in (m for p in _BEHIND_EN if (m := p.search(said)) is not None):
        if int(m["a"]) < int(m["b"]):
            return Contrast("job.rank.behind", int(m["r"]), m[0])
    if m := _ABSENT.search(said):
        return Contrast("job.rank.behind", int(m["r"] or m["z"]), m[0])
    return None


def told(said: str, named: Named, *, trouble: bool) -> tuple[tuple[Observation, ...], str]:
    """The contrasts of a sentence as observations of a job, and all words that told them.

    `trouble`: whether anything is said to be wrong; without it a change is only a change.
    """
    marked = _numbered(named.marked, said, named)
    found = [c for c in contrasts(marked) if trouble or c.fact != SINCE]
    late = behind(said)
    found += [late] if late is not None else []
    host = node(named.slots.node[0] if len(named.slots.node) == 1 and "[" not in named.slots.node[0] else "")
    job = Subject(Scope.JOB, things.UNSAID, host)
    line = excerpt(said)
    out = tuple(Observation(c.fact, job, c.value, source=TOLD, excerpt=line, origin=Origin.TOLD) for c in found)
    return out, " | ".join(c.words for c in found)


def _numbered(marked: str, said: str, named: Named) -> str:
    """The marked sentence where only nodes are marked, so that a step keeps its number."""
    spans = iter(said[start:end] for start, end, _ in named.spans)
    whole = re.sub(r"<[a-z]+>", lambda m: (of := next(spans, m[0]), m[0] if m[0] == "<node>" else of)[1], marked)
    return " ".join(whole.split())


def without(clauses: tuple[str, ...], words: str) -> tuple[str, ...]:
    """The clauses that tell more than these words did."""
    plain = "".join(_letters(words))
    return tuple(c for c in clauses if not _covered(c, plain))


def _covered(clause: str, plain: str) -> bool:
    said = "".join(_letters(clause))
    return said in plain or (
        len(said) > _SOME and any(part in said and 2 * len(part) >= len(said) for part in plain.split("|"))
    )


_SOME = 4  # letters


def _letters(text: str) -> Iterator[str]:
    return (c for c in text.casefold() if c.isalnum() or c == "|")
