"""What a sentence states as so: "volatile uncorrectable ecc is 3", "one NVLink is inactive", "7 of 8 GPUs show up".

Names, units and values are those of the fact vocabulary and of the lexicon. What was stated and could not be taken as a
fact is kept word for word: nobody may say yes over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from assistant.intent import phrases, symptoms
from assistant.intent.assumed import written
from assistant.intent.grammar import facts_of, words_of
from assistant.intent.query import Slots
from assistant.intent.slots import Named
from assistant.intent.told import TOLD
from assistant.values import Problem, parse
from knowledge.facts import FactSpec, Kind, Type, vocabulary
from knowledge.identity import UNKNOWN_PCI
from knowledge.lazy import lazy
from knowledge.lexicon import Told, lexicon
from knowledge.observation import Event, Observation, Origin, Scope, Subject, Value, gpu, node
from knowledge.text import excerpt

MOST, OTHERS = 32, 16  # facts of one sentence, and GPUs that one clause is about
_I = re.IGNORECASE
_UNSAID = f"{UNKNOWN_PCI}?"
_OTHER = f"{UNKNOWN_PCI}others"
# A100, H100s, MI300X, GB200: a number within a name counts nothing.
_MODEL = lazy(
    r"(?<![a-z0-9])(?:rtx|gtx|tesla|quadro)?\s?(?:[abghlvtp]|gb|gh|mi|rtx|gtx|rx)[0-9]{2,4}[a-z]{0,3}(?![a-z0-9])|(?<![a-z0-9])[0-9]{1,3}\s?x(?=\s+[a-z])",
    _I,
)
# 8 GPUs | 8 卡 | 8xH100: how many there are is no reading of any.
_COUNT = lazy(
    r"(?<![a-z0-9.])(?:(?P<some>[0-9]{1,6})\s*(?:(?:out\s+)?of|/)\s*(?:the|our|my|its)?\s*)?[0-9]{1,6}\s*(?:-\s*)?(?:<model>|gpus?|nodes?|cards?|machines?|hosts?|ranks?|jobs?)(?![a-z])|[0-9]{1,6}\s*(?:块|张|台|个节点|个gpu|卡)",
    _I,
)
_ENDS = lazy(
    r"[;?。；！？\n，]|\.(?=\s|$)|,(?![0-9])|(?<![0-9]),|!(?=\s+[A-Z])|(?<![a-z])(?:and|but|while|whereas)\s+(?=(?:only\s+)?(?:one|an?other|the\s+others?|others|the\s+rest|<gpu>|[0-9]+\s+of)(?![a-z]))|(?=其他|其余|另外)",
    _I,
)
_OTHERS = lazy(r"(?<![a-z])(?:the\s+)?(?:others?|rest)(?![a-z])|其他|其余|另外|别的", _I)
# What a question begins with; what stands ahead of it is a clause of its own, with or without a comma.
_ASKS_EN = lazy(
    r"(?<![a-z'])(?:can (?:i|we|it|you|this|that|they|the)|could (?:i|we|it)|should (?:i|we|it|this|that|the)|shall (?:i|we)|may (?:i|we)|"
    r"is (?:it|this|that|the (?:node|gpu|machine|card|box|server|host|hardware|system)|my|our|there|everything|all)|are (?:we|they|the|these|those|my|our|there)|am i|do (?:i|we|you)|does (?:it|this|that)|did|"
    r"will (?:it|this|that|the)|would (?:it|you|that)|what|why|how|which|when (?:can|should|will)|where|who|any (?:idea|advice)|"
    r"(?:still )?(?:usable|safe|ok|okay|fine) (?:to|for)|still (?:ok|okay|fine|usable|good)|(?:ok|okay|safe|fine|usable|bad|normal|healthy)\s*\?|show|explain|tell me|check|look|run|list|give me|help)(?![a-z])",
    _I,
)
_ASKS_ZH = lazy(
    "还?能不能|能否|可否|可不可以|要不要|该不该|是不是|是否|需不需要|还可以|还能|可以(?!看到)|能(?:继续|用|跑)|需要(?!复位)|要换|该换|应该怎|怎么|如何|为什么|为何|为啥|什么|哪|正常吗|有问题吗|有没有|多少|请(?:看|查|解释)|查看|看看|解释"
)
_BEGINS = lazy(
    r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|shall|may|might|must)(?![a-z])", _I
)
_TAIL_ZH = "吗么呢"
_NOT = frozenset(["no", "not", "without", "never", "none", "zero", "没", "无", "未", "不"])
# States that nobody would mention of something in order.
_BAD = lazy(
    r"(?<![a-z])(?:fail(?:s|ed|ing|ures?)?|errors?|err|faults?|faulty|down|dead|died|inactive|missing|lost|broken?|hangs?|hung|stuck|crash\w*|could not|cannot|can'?t|unable|won'?t|doesn'?t|does not|did not|flap(?:s|ped|ping)?|"
    r"degraded|unhealthy|wrong|hot|slow(?:er|ly)?|timeouts?|timed out|drops?|dropped|corrupt(?:ed|ion)?|panic(?:s|ked)?|unstable|disconnect(?:s|ed)?|unresponsive|zombie|leak(?:s|ed|ing)?|"
    r"throttl(?:es|ed|ing)|overheat(?:s|ed|ing)?|unreachable|refus(?:es|ed)|killed|gone|disappear(?:s|ed)|mismatch|exceed(?:s|ed)|bad|weird|strange|drained|tainted|nan|oom|xid|pending)(?![a-z])|"
    r"坏|失败|错|掉|断|丢|异常|挂|死|慢|卡住|超时|故障|不见|不通|不动|没反应|无响应|降频|过热|烫|泄漏|崩|报警|告警|不一致|不匹配|缺|少了",
    _I,
)


class Stated(NamedTuple):
    """What a sentence states."""

    observations: tuple[Observation, ...] = ()  # of origin told
    asks: str = ""  # the clauses that ask, where others state
    unread: tuple[str, ...] = ()  # clauses that state something, and that no fact was read from


def stated(said: str, found: Named, *, diagnosed: bool = False) -> Stated:
    """The facts that a sentence states, about the things that it names.

    `diagnosed`: what is wrong is asked, so a clause that names a symptom is understood as that.
    Of what it only asks, nothing: neither "is the row remap pending?" nor "what is a row remap failure?" states one.
    """
    if not _worth(found.marked):
        return Stated()
    named = found.slots
    text, originals = _without_models(said, found)
    so_far: list[Observation] = []
    unread: list[str] = []
    asked: list[str] = []
    for clause, asks in _clauses(text):
        words = _MARK.sub(lambda _: next(originals, ""), clause)
        if asks:
            asked.append(" ".join(words.split()))
        told = [] if asks and not _TOLD_IN_QUESTION.search(clause) else list(_told(clause, named, excerpt(said)))
        if not asks:
            told = [*_written(words, named)] or told or [*_same_of_others(clause, so_far)]
        so_far += told
        if not asks and not told and not _CODE.search(clause) and _states(clause, diagnosed):
            unread.append(excerpt(" ".join(words.split()), 120))
    return Stated(_once(so_far), ", ".join(asked) if so_far or unread else "", tuple(dict.fromkeys(unread)))


def _same_of_others(clause: str, before: Sequence[Observation]) -> Iterator[Observation]:
    """ "... and the others 65": the reading named last, of the GPUs that were not meant."""
    numbers = re.findall(r"[0-9]+(?:\.[0-9]+)?", _COUNT.sub(" ", clause))
    last = next(
        (o for o in reversed(before) if isinstance(o.value, int | float) and o.subject.scope is Scope.GPU), None
    )
    if last is None or len(numbers) != 1 or not (others := _others(clause)):
        return
    read = parse(vocabulary()[last.fact], numbers[0])
    if isinstance(read, Problem):
        return
    for n in range(others):
        yield Observation(
            last.fact,
            gpu(f"{_OTHER}{n + 1}", last.subject.host),
            read,
            source=TOLD,
            excerpt=last.excerpt,
            origin=Origin.TOLD,
        )


def _once(found: Sequence[Observation]) -> tuple[Observation, ...]:
    """Each fact of a thing once: of two values nobody can tell which is meant."""
    first = {(o.fact, o.subject): o for o in reversed(found)}
    return tuple(o for o in found if first[o.fact, o.subject] is o)[:MOST]


_MARK = lazy(r"<[a-z]+>")
_CODE = lazy("<s?xid>")  # told as an event already

# "can I use a GPU that has fallen off the bus" states it; "is the link down?" does not.
_TOLD_IN_QUESTION = lazy(r"(?<![a-z])(?:that|which|whose|with|since|because|although|when|if)(?![a-z])|的", _I)


def _worth(marked: str) -> bool:
    """Whether a sentence can state anything: most hold neither a number nor a word of trouble, nor a name with a value."""
    return _BAD.search(marked) is not None or bool(
        re.search(r"[0-9]|(?<![a-z])(?:is|are|was|on|off|yes|true)(?![a-z])|是|有|没|未|不", marked, _I)
    )


def _without_models(said: str, found: Named) -> tuple[str, Iterator[str]]:
    """The sentence with a mark for each slot and each name of a product, and what stood in their places."""
    spans = [said[start:end] for start, end, _ in found.spans]
    slots, originals = iter(spans), list[str]()

    def mark(m: re.Match[str]) -> str:
        slot = m[0].startswith("<")
        originals.append(next(slots, "") if slot else m[0])
        return m[0] if slot else " <model> "

    text = re.sub(rf"{_MARK.pattern}|{_MODEL.pattern}", mark, found.marked, flags=_I)
    return text, iter(originals)


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """The clauses of a sentence, each with whether it asks."""
    cuts = sorted({m.start() for pattern in (_ASKS_EN, _ASKS_ZH) for m in pattern.finditer(text)})
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for piece in pieces:
        asks = _ASKS_EN.match(piece) is not None or _ASKS_ZH.match(piece) is not None
        for part in _ENDS.split(piece):
            part = part.strip(" ,?？，")
            if part:
                yield part, asks or part[-1] in _TAIL_ZH or _BEGINS.match(part) is not None
                asks = False


def _states(clause: str, diagnosed: bool) -> bool:
    """Whether a clause says that something is not in order, or how much of something there is."""
    if _negated(clause):
        return False
    bare = re.sub(r"<([a-z]+)>", r" \1 ", _COUNT.sub(" ", clause))
    if symptoms.find(words_of(bare)):
        return not diagnosed
    read = _NUMBER.search(bare) is not None and _SAYS.search(bare) is not None
    return read or _IS.search(bare) is not None or _BAD.search(bare) is not None


_NUMBER = lazy(r"(?<![a-z0-9_-])[0-9]")
_SAYS = lazy(
    r"(?<![a-z])(?:is|are|was|were|at|shows?|reports?|says?|reads?|has|have|had|got|gets?|runs?|sits?|stays?|drops?|only|about|every|per)(?![a-z])|[=:]|是|为|有|报|显示|只|达|到|才",
    _I,
)


# "the port is polling": whatever it is, somebody thought it worth saying. What is said to be fine is no doubt.
_FINE = r"(?:all |completely |running |still |also )?(?:ok|okay|fine|good|normal|healthy|up|running|working|new|clean|green|idle|ready|there|here|正常|没问题|好的|健康|空闲|新的|干净)"
_IS = lazy(
    rf"(?<![a-z])(?!(?:it|this|that|there|he|she|what|which|who)(?![a-z]))[a-z0-9)\]/%-]+\s+(?:is|are|was|were)\s+(?!{_FINE}(?![a-z]))\S|[\u4e00-\u9fffa-z0-9]\s*[是为]\s*(?!{_FINE})[^否不什\s]",
    _I,
)


def _negated(clause: str) -> bool:
    """ "no errors in dmesg", "没有报错": nothing is wrong with what is not there."""
    return (
        re.search(
            rf"(?:(?<![a-z])(?:no|without|zero|never|nothing)\s+(?:\w+\s+){{0,2}}|(?:没有?|无|未见?)[\u4e00-\u9fff]{{0,2}})(?:{_BAD.pattern})",
            clause,
            _I,
        )
        is not None
    )


# --- facts of a clause --------------------------------------------------------------------


def _written(said: str, named: Slots) -> Iterator[Observation]:
    """Facts under their full names."""
    for name, word in written(said):
        spec = vocabulary().get(name)
        if spec is not None and spec.kind is not Kind.EVENT and not isinstance(read := parse(spec, word), Problem):
            yield _observation(spec, read, _subject(spec.scope, named), excerpt(said))


def _told(clause: str, named: Slots, line: str) -> Iterator[Observation]:
    rest = [w for w in words_of(clause) if w != "<model>"]
    for start, end, tells in _statements(rest):
        numbers = [w for w in rest[start:end] if _is_number(w)]
        for one in tells:
            yield from _of_statement(one, numbers, named, line)
        rest[start:end] = ["|"] * (end - start)
    plain = words_of(
        _HAN_COUNT.sub(
            lambda m: f" {'一二三四五六七八九十'.find(m[1].replace('两', '二')) + 1} ", _COUNT.sub(" ", " ".join(rest))
        )
    )
    others = _others(clause)
    for name, value in _named_values(plain):
        spec = vocabulary()[name]
        if others and spec.scope is Scope.GPU:
            for n in range(others):
                yield _observation(spec, value, _subject(spec.scope, named, f"{_OTHER}{n + 1}"), line)
        else:
            yield _observation(spec, value, _subject(spec.scope, named), line)


_HAN_COUNT = lazy("([一二两三四五六七八九十]) (?=[次个条])")


def _others(clause: str) -> int:
    """How many GPUs a clause is about that are not the one in question: "the others 65" of at least two, "7 of 8 GPUs"."""
    counted = _COUNT.search(clause)
    some = int(counted["some"]) if counted and counted["some"] else 0
    if some > 1:
        return min(some, OTHERS)
    return 2 if _OTHERS.search(clause) else 0


def _statements(words: Sequence[str]) -> list[tuple[int, int, tuple[Told, ...]]]:
    """Start, end and facts of each statement that the words hold, the longest first, none within another."""
    by_first, rows = _rows()
    shape = ["<n>" if _is_number(w) else w for w in words]
    found = []
    for at, word in enumerate(shape):
        for number in by_first.get(word, ()):
            row, tells = rows[number]
            if ends := phrases.ends(row, shape, [at]):
                found.append((at, max(ends), tells))
    found.sort(key=lambda one: (one[0] - one[1], one[0]))
    out: list[tuple[int, int, tuple[Told, ...]]] = []
    for start, end, tells in found:
        if all(end <= a or start >= b for a, b, _ in out):
            out.append((start, end, tells))
    return out


@cache
def _rows() -> tuple[Mapping[str, list[int]], list[tuple[phrases.Row, tuple[Told, ...]]]]:
    """The statements of the lexicon as rows, and those that each word can begin."""
    rows = [(phrases.parse(s.text.replace("<m>", "<n>"), {}), s) for s in lexicon().statements]
    by_first: dict[str, list[int]] = {}
    out: list[tuple[phrases.Row, tuple[Told, ...]]] = []
    for number, (row, s) in enumerate(rows):
        for word in phrases.firsts(row):
            by_first.setdefault(word, []).append(number)
        out.append((row, _ordered(s.text, s.tells)))
    return by_first, out


def _ordered(text: str, tells: tuple[Told, ...]) -> tuple[Told, ...]:
    """The facts with <n> and <m> as the first and the second number of this phrase: "8 卡只有 7 张" says the greater first."""
    if 0 <= text.find("<m>") < text.find("<n>"):
        swap = {"<n>": "<m>", "<m>": "<n>"}
        return tuple(
            t._replace(value=swap.get(t.value, t.value) if isinstance(t.value, str) else t.value) for t in tells
        )
    return tells


def _of_statement(one: Told, numbers: Sequence[str], named: Slots, line: str) -> Iterator[Observation]:
    spec = vocabulary().get(one.fact)
    if spec is None:
        return
    if spec.kind is Kind.EVENT:
        yield _observation(spec, Event(None, dict(one.where)), _subject(spec.scope, named), line)
        return
    value: Value = one.value
    if value in ("<n>", "<m>"):
        at = 0 if value == "<n>" else 1
        if len(numbers) <= at:
            return
        read = parse(spec, numbers[at])
        if isinstance(read, Problem):
            return
        value = read
    yield _observation(spec, value, _subject(spec.scope, named), line)
    if one.others is not None:
        yield _observation(spec, one.others, _subject(spec.scope, named, _OTHER), line)


def _named_values(words: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """Facts called by their names, each with the value that stands nearest behind it, else ahead of it."""
    spans = facts_of(words)
    for i, (start, end, name) in enumerate(spans):
        spec = vocabulary().get(name)
        if spec is None or spec.kind is Kind.EVENT:
            continue
        behind = words[end : spans[i + 1][0] if i + 1 < len(spans) else len(words)]
        ahead = words[spans[i - 1][1] if i else 0 : start]
        value = _value(spec, behind, ahead)
        if value is not None:
            yield name, value
    if not spans:
        yield from _by_unit(words)


def _value(spec: FactSpec, behind: Sequence[str], ahead: Sequence[str]) -> Value:
    """What is said of a fact; None when nothing is."""
    if spec.type in (Type.INT, Type.FLOAT):
        for words, backwards in ((behind, False), (ahead, True)):
            numbers = [i for i, w in enumerate(words) if _is_number(w)]
            if numbers:
                at = numbers[-1] if backwards else numbers[0]
                said = f"{words[at]} {words[at + 1]}" if at + 1 < len(words) and words[at + 1] in _UNITS else words[at]
                read = parse(spec, said)
                return None if isinstance(read, Problem) else read
        return None
    if spec.type is Type.BOOL:
        return _yes_or_no(spec, behind, ahead)
    if spec.type is Type.ENUM:
        return next((v for v in (*_enums(spec, behind), *_enums(spec, ahead))), None)
    return None


# Readings that say by their name what is wrong: "a pending row remap", "power brake".
_TROUBLE = lazy(r"\.(?:\w*pending|failure|failed|\w*exceeded|\w*required|hw_\w+|sw_thermal)$")
_UNITS = frozenset(
    ["c", "w", "mhz", "ghz", "gb", "mb", "gib", "mib", "%", "度", "瓦", "degrees", "watts", "kw", "percent", "ms", "s"]
)


def _yes_or_no(spec: FactSpec, behind: Sequence[str], ahead: Sequence[str]) -> Value:
    number = next((w for w in (*behind, *reversed(ahead)) if _is_number(w)), "")
    if number:
        return float(number) > 0
    said = [v for _, _, v in _words_for_values().find(behind)]
    if said and said[0] in ("true", "false"):
        return said[0] == "true"
    if _TROUBLE.search(spec.name) is None:
        return None  # "ecc": of a setting its name alone says nothing
    return not (_NOT & {*behind, *ahead[-3:]})


def _enums(spec: FactSpec, words: Sequence[str]) -> Iterator[str]:
    text = f" {' '.join(words)} "
    for value in sorted(spec.values, key=len, reverse=True):
        label = spec.labels.get(value)
        names = [value.replace("_", " "), *((label.en.casefold(), " ".join(label.zh)) if label else ())]
        if any(f" {name} " in text for name in names):
            yield value


def _by_unit(words: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """Readings that have no name but their unit: "94 C", "345 MHz"."""
    for number, unit in pairwise(words):
        name = _MEASURES.get(unit) if _is_number(number) else None
        spec = vocabulary().get(name) if name else None
        if name and spec is not None and not isinstance(read := parse(spec, f"{number} {unit}"), Problem):
            yield name, read


_MEASURES = {
    **dict.fromkeys(("c", "celsius", "degrees", "degree", "deg", "度"), "gpu.temperature.core"),
    **dict.fromkeys(("w", "watts", "watt", "瓦"), "gpu.power.draw"), "mhz": "gpu.clock.sm",
}  # fmt: skip


@cache
def _words_for_values() -> phrases.Runs:
    return phrases.Runs(lexicon().values.items())


def _is_number(word: str) -> bool:
    return word[:1].isdecimal() and word.isascii()


# --- whose --------------------------------------------------------------------------------


def _observation(spec: FactSpec, value: Value, subject: Subject, line: str) -> Observation:
    return Observation(spec.name, subject, value, source=TOLD, excerpt=line, origin=Origin.TOLD)


def _subject(scope: Scope, named: Slots, called: str = _UNSAID) -> Subject:
    """The thing that is meant: the one GPU or node that is named, else one of its kind of which nobody said which."""
    host = node(named.node[0] if len(named.node) == 1 and "[" not in named.node[0] else "")
    if scope is Scope.NODE:
        return host
    one = named.gpu[0] if len(named.gpu) == 1 else None
    card = gpu(_UNSAID if one is None else f"index:{one}" if isinstance(one, int) else one, host.id)
    if scope is Scope.GPU:
        return card if called == _UNSAID else gpu(called, host.id)
    return Subject(scope, called, card if scope is Scope.LINK else host)
