"""Two values of one quantity that a sentence holds against each other: "gpu 6 sits at 1200 MHz while the rest are at 1755".

Where the values stand tells what the second one is: of the others at the same time, what it should be, or what it was. A
pair that shows none of these is not compared; what the quantities mean stands in ``compared.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from assistant.intent import setting, things
from assistant.intent.query import Compared
from assistant.intent.slots import Named, slots
from assistant.intent.told import TOLD
from knowledge.compared import Against, Quantity, quantities
from knowledge.facts import Type, vocabulary
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, Subject, gpu, node
from knowledge.record import dataclass
from knowledge.text import excerpt

MOST = 4  # pairs of one sentence
_I = re.IGNORECASE
_LONG = 400  # characters: what is longer tells more than one comparison
_UNITS = (
    r"tokens?/s(?:ec)?|tok/s|tokens per second|samples per second|samples?/s(?:ec)?|images/s|imgs?/s|it/s|steps/s|req/s|token每秒|样本/秒|"
    r"gi?b/s(?:ec)?|gbps|gbit/s|gbit|gi?b|mi?b|mhz|ghz|kw|tflops?(?:/(?:s|gpu))?|pflops|watts?|°\s?c|℃|celsius|degrees?|deg|percent|pct|%|nvlinks?|条nvlink|lanes?|links?|errors?|"
    r"tps|qps|ms|minutes|min|seconds?|secs?|毫秒|瓦|度|秒|条|根|[个次](?!卡)|[gwcs]"
)
_NUMBER = lazy(
    rf"(?<![a-z0-9_.,:-])(?P<mark>x|gen(?:eration)?\s?|pcie\s?)?(?P<n>[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+(?:\.[0-9]+)?)(?:\s*(?P<k>k)(?=\s|/|$))?\s*(?P<u>(?:{_UNITS})(?![a-z0-9]))?(?![0-9]|\.[0-9])",
    _I,
)
# Numbers that count, name or date something else than what is compared.
_OTHER_NUMBERS = lazy(
    r"[$€£¥]\s*[0-9][0-9.,]*\s*[km]?(?![a-z])|(?<![a-z])(?:spen[dt]|paid|pay|costs?|budget(?: is| of)?)\s+(?:about |around |~)?[0-9][0-9.,]*\s*[km]?(?![a-z0-9%])|(?:花了?|花费|预算|成本)\s*(?:是|为|约)?\s*[0-9][0-9.,]*\s*[万亿kKmM]?|"
    rf"{things.MODEL.pattern}|(?<![a-z])[0-9]+\s?(?:gpus?|cards?|nodes?|ranks?|hours?|days?|weeks?|months?|h|d)(?![a-z/])|(?<![a-z0-9])[0-9]+\s*x\s*(?=<model>|[a-z])"
    r"|(?<![a-z])(?:one|two|three|four|five|six|seven|eight|gpus?|cards?|nodes?|ranks?|>)\s+(?:out\s+)?of\s+(?:(?:the|my|our|its|all|these)\s+)*[0-9]{1,2}(?![0-9.])(?!\s*(?:mhz|w|c|gb|%)(?![a-z]))"
    r"|(?<![a-z])(?:micro-?|global )?batch(?: ?sizes?)?\s*(?:of|is|=|:|为|是|大小)?\s*[0-9]+(?![0-9.%])|(?<![a-z0-9.])[0-9]+ (?:per|each|a) (?:gpu|card|rank|node)(?![a-z])"
    r"|(?<![a-z])(?:ranks?|nodes?|gpus?|step|layer|port|cuda|driver|nccl|torch|pytorch|version|fp|bf|v)[ -]?[0-9][0-9.]*(?:\s*(?:-|to)\s*[0-9]+)?(?!\s*(?:w|mhz|gb|c)(?![a-z]))"
    r"|[0-9]+\s*(?:张卡?|块|台|个节点|个卡|卡|小时|天|周|个月|月|号)|(?:其余|其他|剩下|另外)的?\s*[0-9]+(?![0-9.]|\s*(?:[mg]hz|w|瓦|c|°|度|g|%|秒|m?s)(?![a-z]))|(?:other|remaining|rest|all|of my|of the|of our)\s+[0-9]{1,2}(?=[\s,.;]|$)(?!\s*(?:mhz|w|c|gb|%)(?![a-z]))",
    _I,
)
_CUT = lazy(
    r"[,;:!]|\.(?=\s)|(?<![a-z])(?:while|whereas|but|vs\.?|versus|and|against|compared (?:to|with)|except|instead of|rather than|where|though|although|now|then|is now|used to be|it was|was)(?![a-z])"
    r"|[，；。：]|而不是|而|但是?|却|现在|目前|如今|只有|对比|相比|其他|其它|其余|别的",
    _I,
)
_OTHERS = lazy(
    r"(?<![a-z])(?:others?(?! hand)|rest|remaining|peers|neighbou?rs?|siblings|everyone else|everything else|elsewhere)(?![a-z])|其[他它余]|别的|另外(?=的|几|[0-9一二三四五六七八九])|剩下|剩余|余下|旁边的",
    _I,
)
_MANY = lazy(
    r"(?<![a-z])(?:all|every|each|most)\s+(?:of\s+)?(?:(?:the|my|our|its)\s+)?(?:gpus?|cards?|nodes?|ranks?|ports?|hcas?|nics?|accelerators|devices)(?![a-z])"
    r"|(?<![a-z])(?:two|three|four|five|six|seven|eight|fifteen|sixteen|[2-9]|1[0-9])\s+(?:out\s+)?of\s+(?:(?:the|my|our)\s+)?(?:[a-z]+|[0-9]+)(?![a-z])|所有|全部|大部分|多数|其中[0-9一二三四五六七八九]+[张块个]|(?<![0-9.])(?:[2-9]|1[0-9]|[两二三四五六七八九十几])\s?[张块台](?!\s?之一)|[0-9]\s?[-~到至]\s?[0-9]{1,2}\s?号?\s?(?:卡|gpu)",
    _I,
)
_ONE = lazy(
    r"(?<![a-z])(?:only\s+)?(?:one|a single|this|that)\s+(?:of\s+(?:them|the [a-z]+)|gpu|card|node|rank|port|hca|nic|device|machine|server|job)(?![a-z])|(?<![a-z])one(?=\s+(?:is|has|runs|sits|shows|at|only|reports)(?![a-z]))|[一某][张块个台](?:卡|gpu|节点|rank|端口|网卡)?|(?<![0-9.])1\s?[张块台](?!\s?里)",
    _I,
)
# A 节点 | B 机 | 节点 a | node b | 二号机 | 这台 | 旧集群: one of two things of a kind, by a letter, a number, or a word that points
_SIDE = lazy(
    r"(?<![a-z0-9])(?P<zh>[a-d]|[0-9]{1,4}\s?号|[一二三四甲乙老旧新]\s?号?)\s?(?:号)?(?P<zk>节点|机器|机房|机(?!型|制|会|柜|时|架)|服务器|集群|卡)|(?P<pk>[这那另]一?(?:台|边|个节点|个集群))"
    r"|(?P<hk>节点|机器|服务器|集群)\s?(?P<h>[a-d])(?![a-z0-9])|(?<![a-z])(?P<ek>node|machine|server|host|box|cluster|site) (?P<e>[a-d])(?![a-z0-9])",
    _I,
)
_SHOULD = lazy(
    r"(?<![a-z])(?:should(?! (?:i|we|you)(?![a-z]))|supposed|expect(?:ed|ing|s)?|spec(?:s|ified)?|data ?sheet|rated|nominal|ought|bought|ordered|paid for|normally|usually|design(?:ed)?|advertised|instead of|rather than|max(?:imum)?|default|capable of|target|promised|typical(?:ly)?)(?![a-z])"
    r"|应[该当有为是]?|本[该应来]|规格|标称|额定|预期|按说|理论|正常(?:是|为|应|情况)|默认|而不是|买的|号称|期望|最大",
    _I,
)
_PAST = lazy(
    r"(?<![a-z])(?<!since )(?:last (?:week|month|night|time|year)|yesterday|used to|before|previous(?:ly)?|earlier|formerly|in the past|once|ago|on the old|until|originally|had been|historically|back then|baseline)(?![a-z])"
    r"|(?<![从自])(?:上周|上个?月|昨天|昨晚|前天|上次|去年)|以前|之前|原来|原先|原本|曾经?|过去|早先|当初|(?:升级|更新|重启|换卡?|改动?|维护|迁移|降级|调整)[^，。；,0-9]{0,8}前",
    _I,
)
_WAS = lazy(r"(?<![a-z])(?:was|were|had|got)(?![a-z])", _I)
_NOW = lazy(
    r"(?<![a-z])(?:now|today|currently|these days|is|are|shows?|reads?|reports?|gets?|only|since)(?![a-z])|现在|目前|今天|当前|如今|只有|只剩|变成|显示",
    _I,
)
# 2 个，之前没注意: where the clause of the last number ends
_BEHIND = lazy(r"(?<=[0-9a-z%°℃度瓦秒个次条了吧])\s*[，。；！](?=[^0-9]*$)")
_BY_NOW = lazy(
    r"\W*(?:但|而|可|却)?(?:现在|目前|今天|如今|这会儿?)(?:只有?|却|变|降|掉|涨|升|飙|突然|忽然|一下子?|协商|成|到|是|为|有|跑|才|都|就|了|\W)*[0-9]"
)
_FROM = lazy(r"(?<![a-z])from\s+(?:about |around |~)?$|[从由]\s*(?:大约|约)?$", _I)
_FROM_BETWEEN = lazy(r"^[^,;，；]{0,20}?(?<![a-z])from\s+(?:about |around |~)?$", _I)
_TO = lazy(
    r"^\s*(?:per step|a step|mfu|busbw)?\s*(?:(?<![a-z])(?:down |up |all the way )?to(?![a-z])|->|→|=>|[一直]{0,2}(?:下?[掉降跌滑]|上?[涨升]|变|增|减|退|协商|训练|建链)?[^,，;；0-9]{0,4}[到至成为]|变)[^,，;；0-9]{0,16}$",
    _I,
)
_WENT = lazy(
    r"(?<![a-z])(?:dropp?(?:s|ed)?|fell|falls?|went|goes|down|up|rose|r[io]se[ns]?|grew|jumped|slid|sank|decreased|increased|degraded|regressed|climbed|changed|slowed)(?![a-z])|掉|降|跌|涨|升|变|退",
    _I,
)
_EITHER = lazy(r"(?<![a-z])or(?![a-z])|还是|或者?", _I)
_IF = lazy(r"(?<![a-z])(?:if|suppose|what is the difference|differ\w*)(?![a-z])|如果|假如|区别", _I)
# 16 links up of 18: the whole stands last, whatever is said ahead of the two
_PART_OF = lazy(
    r"^[^,;:0-9，；：]{0,30}?(?<![a-z])(?:out )?of (?:the |its |all |a total of |possible |expected )?$|^\s*/\s*$|^[^,;0-9，；]{0,12}[，,]?(?:总共|共|一共)(?:有)?\s*$",
    _I,
)
_INSTEAD = lazy(r"^[^0-9]{0,30}(?:instead of|rather than|but should|should be|而不是|而非|应[该为是])[^0-9]{0,20}$", _I)


@dataclass(frozen=True, slots=True)
class _Value:
    """A number within the text, with what stands around it."""

    start: int
    end: int
    number: float
    unit: str
    mark: str
    own: bool  # whether its unit or mark stands with it


class _Whose(NamedTuple):
    """The one thing that a side names: its kind ("gpu", "rank", "node", "port") and its name."""

    kind: str = ""
    name: str = ""


def compared(said: str, found: Named) -> tuple[Compared, ...]:
    """The pairs of values that a sentence holds against each other, those of the first quantity first; empty where it asks which
    of two is right, or only supposes one."""
    text, called = _text(said, found)
    text = setting.blanked(text)
    if len(text) > _LONG or _IF.search(text):
        return ()
    out: list[Compared] = []
    for q, a, b in _pairs(text):
        one = _judged(q, a, b, text, called)
        if one is not None and all(one.quantity != other.quantity for other in out):
            out.append(one)
    return tuple(out[:MOST])


def observations(pairs: Sequence[Compared], said: str, found: Named) -> Iterator[Observation]:
    """What the pairs tell: the value of the one in question, that of the others, and what it should be. What it was is no
    reading of today; nodes, jobs and tests beside the one in question have no names."""
    known = vocabulary()
    host = found.slots.node[0] if len(found.slots.node) == 1 and "[" not in found.slots.node[0] else ""
    by_id = {q.id: q for q in quantities()}
    for pair in pairs:
        q = by_id[pair.quantity]
        scope = known[q.fact].scope
        own = _subject(scope, pair, host)
        yield _told(q.fact, own, pair.value * q.scale, said)
        if pair.kind is Against.EXPECTED and q.expected:
            yield _told(q.expected, own, pair.other * q.scale, said)
        if pair.kind is Against.PEERS and scope in (Scope.GPU, Scope.PORT):
            for n, called in enumerate(pair.others, 1):
                unnamed = not called or pair.of[0] == "node"  # of a node it is told which, and not which of its GPUs
                name = f"{things.OTHER}{n}" if unnamed else things.named(int(called)) if called.isdecimal() else called
                other = gpu(name, host) if scope is Scope.GPU else Subject(scope, name, node(host))
                yield _told(q.fact, other, pair.other * q.scale, said)


def figures(pair: Compared) -> frozenset[float]:
    """The two values of a pair as they are written, in the unit that people say, and in that of its fact."""
    scale = next(q.scale for q in quantities() if q.id == pair.quantity)
    return frozenset((pair.value, pair.other, *pair.written, pair.value * scale, pair.other * scale))


def taken(clause: str, pairs: Sequence[Compared], read: Sequence[Observation]) -> bool:
    """Whether a clause that no fact was read from tells nothing but values of the pairs, and of what was read beside them."""
    numbers = {f"{n:g}" for pair in pairs for n in (pair.value, pair.other, *pair.written)}
    numbers |= {f"{o.value:g}" for o in read if isinstance(o.value, int | float)}
    bare = _OTHER_NUMBERS.sub(" ", clause)
    left = [m for m in _NUMBER.finditer(bare) if f"{_number(m):g}" not in numbers]
    return len([*_NUMBER.finditer(bare)]) > len(left) == 0


def _told(fact: str, subject: Subject, value: float, said: str) -> Observation:
    whole = vocabulary()[fact].type is Type.INT
    return Observation(
        fact, subject, round(value) if whole else float(value), source=TOLD, excerpt=excerpt(said), origin=Origin.TOLD
    )


def _subject(scope: Scope, pair: Compared, host: str) -> Subject:
    kind, name = pair.of
    if scope is Scope.GPU:
        return gpu(things.named(int(name) if name.isdecimal() else name) if kind == "gpu" else things.UNSAID, host)
    if scope is Scope.LINK:
        return Subject(
            scope,
            things.UNSAID,
            gpu(things.named(int(name) if name.isdecimal() else name) if kind == "gpu" else things.UNSAID, host),
        )
    of_scope = {Scope.PORT: "port", Scope.RANK: "rank"}.get(scope, "")
    return Subject(scope, name if kind and kind == of_scope else things.UNSAID, node(host))


# --- the values of a sentence -------------------------------------------------------------


def _text(said: str, found: Named) -> tuple[str, dict[str, _Whose]]:
    """The sentence with a mark of its own for each thing that it names, and what each mark stands for: ``<ta>`` for one thing,
    "all gpus <la>" for a list. Numbers of other slots (codes, times, processes) measure nothing and are blanked."""
    out, last = [], 0
    called: dict[str, _Whose] = {}
    for start, end, kind in sorted(found.spans):
        if start < last:
            continue
        if kind == "gpu" and _EVERY.search(said, 0, start):  # every other GPU: 18
            continue
        if (held := _VERSUS.search(said, start, end)) is not None:  # gpu 4 versus 3 on the others
            end = held.start()
        part, last_end, last = said[start:end], last, end
        out.append(said[last_end:start])
        if kind not in ("gpu", "rank", "node") or len(called) == len(_LETTERS):
            out.append(re.sub("[0-9]", "_", part))
            continue
        members = getattr(slots(part).slots, kind) or getattr(found.slots, kind)
        one = len(members) == 1 and "[" not in str(members[0])
        mark = f"<{'t' if one else 'l'}{_LETTERS[len(called)]}>"
        called[mark] = _Whose(kind, ",".join(map(str, members)))
        out.append(f" {kind} {mark} " if one else f" all {kind}s {mark} ")
    out.append(said[last:])
    return things.with_utilization("".join(out)), called


_VERSUS = lazy(r"\s*(?<![a-z])(?:vs\.?|versus)(?![a-z])", _I)
_EVERY = lazy(r"(?<![a-z])(?:other|every|each)\s*$|(?:其\s*[他它余]|别)\s*的?\s*$", _I)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _pairs(text: str) -> Iterator[tuple[Quantity, _Value, _Value]]:
    """Quantities of which the text holds exactly two values, the best named first."""
    every, known = [*_values(text)], vocabulary()
    if len(every) < 2:
        return
    foreign = things.is_foreign(text)
    used: set[int] = set()
    for q in sorted(quantities(), key=lambda q: not _named(q, text)):
        if q.needs_name and not _named(q, text):
            continue
        if (q.unless is not None and q.unless.search(text)) or (foreign and known[q.fact].scope is Scope.GPU):
            continue
        mine = [v for v in every if v.start not in used and _is_of(q, v)]
        plain = [v for v in mine if v.own]
        if len(mine) > 2 and 0 < len(plain) <= 2:  # what is left over measures something else
            bare = sorted((v for v in mine if not v.own), key=lambda v: _apart(v, plain[0]))
            mine = sorted([*plain, *bare][:2], key=lambda v: v.start)
        if len(mine) == 2 and (plain or _named(q, text)) and mine[0].number != mine[1].number:
            used |= {v.start for v in mine}
            yield q, mine[0], mine[1]


def _apart(bare: _Value, plain: _Value) -> float:
    """How many times one number is the other: a count of GPUs (8) is far from what they show (1200 MHz)."""
    low, high = sorted((abs(bare.number), abs(plain.number)))
    return high / low if low else float("inf")


def _named(q: Quantity, text: str) -> bool:
    return q.said is not None and q.said.search(text) is not None


def _is_of(q: Quantity, v: _Value) -> bool:
    """Whether a value can be of a quantity: by its unit, what stands ahead of it, or its bare number."""
    if v.mark or q.mark:
        fits = v.mark == q.mark or (bool(q.mark) and not v.mark and v.unit in q.units)
    else:
        fits = v.unit in q.units or (not v.unit and q.counts)
    return fits and (not q.values or v.number * q.units.get(v.unit, 1) in q.values)


# A100 80G 显存应该是80G: said again of the model
_SIZE_OF_MODEL = lazy(
    r"(?<![a-z0-9])(?:[abhlv][0-9]{2,4}|gb?h?[0-9]{3}|mi[0-9]{3})(?:[ -](?:pcie|sxm[0-9]?|nvl))?[ -]?(?P<size>[0-9]{2,3})\s?g(?:i?b)?(?=[^0-9](?:.*[^0-9.])?(?P=size)\s?g(?:i?b)?(?![a-z0-9/]))",
    _I,
)


def _values(text: str) -> Iterator[_Value]:
    """The numbers of a text; one without a unit has that of the number before it, else of the one behind."""
    text = _SIZE_OF_MODEL.sub(lambda m: re.sub(r"[0-9]", "_", m[0]), text)
    text = things.SHARE_OF_GPUS.sub(lambda m: re.sub(r"[0-9]", "_", m[0]), things.without_differences(text))
    bare = _OTHER_NUMBERS.sub(lambda m: re.sub(r"[0-9]", "_", m[0]) if not _UNITED.search(m[0]) else m[0], text)
    found = [*_NUMBER.finditer(bare)]
    units = [_unit(m["u"]) or _called(bare[: m.start()]) for m in found]
    marks = [_mark(m["mark"]) for m in found]
    for i, m in enumerate(found):
        unit, mark = units[i], marks[i]
        if not unit and not mark:
            near = next((j for j in range(i - 1, -1, -1) if units[j] or marks[j]), None)
            near = next((j for j in range(i + 1, len(found)) if units[j] or marks[j]), None) if near is None else near
            unit, mark = (units[near], marks[near]) if near is not None else ("", "")
        yield _Value(m.start(), m.end(), _number(m), unit, mark, bool(units[i] or marks[i]))


# 温度 90 降频到 1300MHz: the unit that a name tells goes before that of a neighbour
_NAMED_UNITS = (
    (lazy(r"(?:温度|(?<![a-z])temp(?:erature)?)\s*(?:是|到|为|达到?|有|is|at|of|[:=])?\s*$", _I), "c"),
    (lazy(r"(?:tokens?/s|tok/s|samples?/s|tps|qps)\s*(?:是|到|为|达到?|有|is|at|of|[:=])?\s*$", _I), "tokens/s"),
    (lazy(r"(?:功耗|功率|(?<![a-z])power(?: draw)?)\s*(?:是|到|为|达到?|有|is|at|of|[:=])?\s*$", _I), "w"),
)


def _called(ahead: str) -> str:
    return next((unit for name, unit in _NAMED_UNITS if name.search(ahead[-24:])), "")


_UNITED = lazy(r"(?:\.[0-9]|[0-9]\s*(?:mhz|gb/s|ms|%))", _I)


def _number(m: re.Match[str]) -> float:
    return float(m["n"].replace(",", "")) * (1000 if m["k"] else 1)


def _unit(said: str | None) -> str:
    plain = re.sub(r"\s+", " ", (said or "").casefold())
    return {"° c": "°c"}.get(plain, plain)


def _mark(said: str | None) -> str:
    plain = (said or "").casefold()
    return "x" if plain == "x" else "gen" if plain.startswith("gen") else ""


# --- what is held against what ------------------------------------------------------------


def _judged(q: Quantity, a: _Value, b: _Value, text: str, called: dict[str, _Whose]) -> Compared | None:
    between = text[a.end : b.start]
    if _EITHER.search(between):
        return None
    if _PART_OF.search(between) and a.number < b.number:
        counted = vocabulary()[q.fact].unit == "count"  # who counts a part of a whole is read by its own words
        return None if counted or q.fills else _made(q, (a, b), Against.EXPECTED, text, (text, ""), called)
    for left, right in _sides(text, a, b):
        kind, first = _kind(left, right, called)
        if kind is None:
            continue
        return _made(q, (a, b) if first else (b, a), kind, text, (left, right) if first else (right, left), called)
    if Against.PEERS in q.meaning and (two := _two_of_a_kind(text, a, b)) is not None:
        first = q.is_worse(a.number, b.number)
        pair = _made(q, (a, b) if first else (b, a), Against.PEERS, text, ("", ""), called)
        of = ("node", two[not first]) if two[0] else ("", "")
        return None if pair is None else pair._replace(of=of, others=(two[first],))
    if _AGAIN.search(text):
        return None
    ahead = text[: a.start]
    if _FROM.search(ahead) or (_TO.search(between) and (_WENT.search(ahead) or _WENT.search(between))):
        return _made(q, (b, a), Against.PAST, text, (text, ""), called) if _TO.search(between) else None
    if _FROM_BETWEEN.search(between) and _WENT.search(ahead):
        return _made(q, (a, b), Against.PAST, text, (text, ""), called)
    if _INSTEAD.search(between):
        return _made(q, (a, b), Against.EXPECTED, text, (text, ""), called)
    return None


# goes from 100 to 0 constantly: neither is what it was
_AGAIN = lazy(
    r"(?<![a-z])(?:constantly|repeatedly|again and again|over and over|all the time|the whole time|periodically|back and forth|and back)(?![a-z])|反复|来回|周期性|不停地?[掉跳]",
    _I,
)


def _sides(text: str, a: _Value, b: _Value) -> Iterator[tuple[str, str]]:
    """What stands with the first value and what with the second, cut at each place between them where another clause may begin."""
    between = text[a.end : b.start]
    if (
        _INSTEAD.search(between)
        or (_TO.search(between) and _FROM.search(text[: a.start]))
        or _FROM_BETWEEN.search(between)
    ):
        return
    for cut in _CUT.finditer(between):
        keeps = cut.end() if re.fullmatch(r"[\W_]+", cut[0]) else cut.start()
        yield text[: a.end + cut.start()], text[a.end + keeps :]
    yield text[: a.end], text[a.end :]


def _two_of_a_kind(text: str, a: _Value, b: _Value) -> tuple[str, str] | None:
    """What two things of a kind are called of which each value names one: A 节点 and B 节点, 这台 and 那台; empty names of
    一张 x16 一张 x8."""
    left, right = text[: a.end], text[a.end :]
    if _LISTED_ONE.search(text[: a.start]) and _LISTED_ONE.search(text[a.end : b.start]):
        return "", ""
    sides = [[*_SIDE.finditer(side)] for side in (left, right)]
    if any(len(side) != 1 for side in sides):
        return None
    one, other = (side[0] for side in sides)
    kinds = [m["zk"] or m["hk"] or m["ek"] or bool(m["pk"]) for m in (one, other)]
    return (one[0].strip(), other[0].strip()) if kinds[0] == kinds[1] and one[0] != other[0] else None


# 一张 x16 一张 x8 | one at x16 and one at x8: right ahead of its value
_LISTED_ONE = lazy(
    r"(?:[一1另]一?\s?[张块台个](?:卡|机器|口)?|(?<![a-z])(?:one|the other)(?:\s+(?:is|at|runs|with|on|has|shows)){0,2})\s*(?:是|为|只有|有|显示|跑)?\s*$",
    _I,
)


def _kind(left: str, right: str, called: dict[str, _Whose]) -> tuple[Against | None, bool]:
    """What the other value is, and whether the value in question is the first of the two."""
    others = bool(_OTHERS.search(left)), bool(_OTHERS.search(right))
    if others[0] != others[1]:
        return Against.PEERS, others[1]
    single = bool(_one(left, called)), bool(_one(right, called))
    many = bool(_MANY.search(left)), bool(_MANY.search(right))
    if single[0] != single[1] and many[single[0]]:
        return Against.PEERS, single[0]
    some, more = (_counts(side) for side in (left, right))
    if some and more and some != more and not _FROM.search(left):  # 六张卡 1755，两张 1200
        return Against.PEERS, some < more
    should = bool(_SHOULD.search(left)), bool(_SHOULD.search(right))
    if should[0] != should[1]:
        return Against.EXPECTED, should[1]
    then = _BEHIND.split(right, maxsplit=1)[0]  # what a later clause says of the past is of no value
    past = bool(_PAST.search(left)), bool(_PAST.search(then))
    if past[0] == past[1]:
        past = bool(_WAS.search(left) and _NOW.search(then)), bool(_WAS.search(then) and _NOW.search(left))
    if past[0] != past[1]:
        return Against.PAST, past[1]
    if _BY_NOW.match(right) and not _NOW.search(left):  # 400G，现在 200G
        return Against.PAST, False
    return None, True


_SO_MANY = lazy(r"(?<![0-9.])([2-9]|1[0-9]|[两二三四五六七八九十])\s?[张块台](?!\s?里)")


def _counts(side: str) -> int:
    """How many cards or machines a side counts last; 0 where it counts none."""
    said = (_SO_MANY.findall(side) or [""])[-1].replace("两", "二")
    return int(said) if said.isdecimal() else "零一二三四五六七八九十".find(said) if said else 0


def _one(side: str, called: dict[str, _Whose]) -> _Whose | None:
    """The one thing that a side is about; without a name where it is only said to be one."""
    if marks := _ONE_MARK.findall(side):
        return called[marks[0]]
    if port := things.PORT.search(side):
        return _Whose("port", port[0].casefold())
    return _Whose() if _ONE.search(side) else None


_WHOLE = 100.0  # %


def _made(
    q: Quantity,
    values: tuple[_Value, _Value],
    kind: Against,
    text: str,
    sides: tuple[str, str],
    called: dict[str, _Whose],
) -> Compared | None:
    """The pair; of peers the worse one is in question, unless it is the others that stand out. None where nothing is known of the kind."""
    if kind not in q.meaning:
        return None
    value, other = (float(f"{v.number * q.units.get(v.unit, 1.0):.9g}") for v in values)  # 940 ms are 0.94 s
    if "%" in q.units and max(value, other) > _WHOLE:
        return None  # a share of the time is no more than all of it: the other number names something
    whose = _one(sides[0], called) or (_one(text, called) if kind is not Against.PEERS else None) or _Whose()
    listed = _LIST_MARK.search(sides[1])
    peers = tuple(called[listed[0]].name.split(",")) if listed is not None and kind is Against.PEERS else ()
    return Compared(
        q.id,
        value,
        other,
        kind,
        (whose.kind, whose.name),
        peers or ("",) * _how_many(sides[1]),
        tuple(v.number for v in values),
    )


_ONE_MARK, _LIST_MARK = lazy("<t[a-z]>"), lazy("<l[a-z]>")
_COUNTED = lazy(
    r"(?<![a-z])(?:other|remaining|rest of the|others?,? all)\s+(?P<en>[a-z]+|[0-9]{1,2})(?![a-z0-9])|(?:其[他余它]|另外|剩下|剩余)的?\s*(?P<zh>[0-9]{1,2}|[一二三四五六七八九])\s*[张块个]",
    _I,
)
_NUMERALS = {
    **{w: n for n, w in enumerate(("two", "three", "four", "five", "six", "seven", "eight"), 2)},
    **{w: n for n, w in enumerate("一二三四五六七八九", 1)},
}
_MAJORITY = lazy(
    r"(?<![a-z])(?P<n>two|three|four|five|six|seven|eight|[2-9])\s+(?:out\s+)?of\s+(?:(?:the|my|our)\s+)?(?:[a-z]+|[0-9]+)",
    _I,
)


def _how_many(side: str) -> int:
    """How many others there are; two where nobody counted them."""
    found = _COUNTED.search(side)
    said = ((found["en"] or found["zh"]) if found else "") or (m["n"] if (m := _MAJORITY.search(side)) else "")
    many = int(said) if said.isdecimal() else _NUMERALS.get(said.casefold(), 2)
    return max(1, min(many, things.OTHERS))


# --- values of a list ---------------------------------------------------------------------

LISTED = "listed"  # the kind of a thing that is known by its place in a list: ("listed", "6 of 8")
_SHORTEST, _FEW = 4, 0.34  # values of a list of which one can stand out, and the share of them that still stands out
_PLACE = lazy(r"\?(?P<n>[0-9]{1,2}) of (?P<all>[0-9]{1,2})$")


def lists(told: Sequence[Observation]) -> bool:
    """Whether values of one quantity are listed, one for each GPU."""
    many = Counter(o.fact for o in told if o.subject.scope is Scope.GPU and isinstance(o.value, int | float))
    return max(many.values(), default=0) >= _SHORTEST


def stand_out(told: Sequence[Observation]) -> tuple[Compared, ...]:
    """Of values that are listed, one for each GPU, those that are clearly worse than the median of the others; the worst first."""
    out: list[Compared] = []
    for q in quantities():
        values = {
            o.subject.id: float(o.value) / q.scale
            for o in told
            if o.fact == q.fact and o.subject.scope is Scope.GPU and isinstance(o.value, int | float)
        }
        if len(values) >= _SHORTEST and Against.PEERS in q.meaning and not out:
            out = sorted(_apart_from_most(q, values), key=lambda c: abs(c.value - c.other), reverse=True)
    return tuple(out[:MOST])


def _apart_from_most(q: Quantity, values: dict[str, float]) -> list[Compared]:
    from statistics import median  # not at the start: it loads fractions, decimals and random numbers

    usual = median(values.values())
    odd = {of: v for of, v in values.items() if q.is_worse(v, usual) and q.differs(v, usual)}
    if len(odd) > _FEW * len(values):
        return []  # two kinds of work, and nobody knows which of them is wrong
    others = ("",) * (len(values) - len(odd))
    return [Compared(q.id, v, usual, Against.PEERS, _in_list(of), others) for of, v in odd.items()]


def _in_list(called: str) -> tuple[str, str]:
    """What a GPU of a list is called: by its place, where nobody numbered it."""
    if place := _PLACE.search(called):
        return LISTED, f"{place['n']} of {place['all']}"
    return "gpu", called.removeprefix("index:")
