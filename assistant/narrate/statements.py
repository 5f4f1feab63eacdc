"""What may be told of each finding, as the words of a sentence: closed forms, whole statements, nothing shortened.

Of a finding there are its name, with the thing it is about and its codes; what was measured of that thing; the sentences of its page,
in their order; whether the thing can be used; what is to be done, and what afterwards. Only roots have the last four: the page of a
symptom speaks of it where it stands alone. `assistant.narrate.telling` says where in a narration each of them may stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from assistant.narrate.material import Item, Kind
from assistant.narrate.wording import sentences
from knowledge.record import dataclass

Words: TypeAlias = tuple[str, ...]

_TOKEN = {
    "en": re.compile(r"\{[^{}]*\}|[A-Za-z]+(?:['’-][A-Za-z]+)*|\S"),
    "zh": re.compile(r"\{[^{}]*\}|[A-Za-z]+(?:['’_-][A-Za-z]+)*|\S"),
}
_ALIKE = str.maketrans("：；，（）’", ":;,()'")
_ARTICLES = ("a", "an", "the")
_QUOTES = frozenset('"“”')
# Placeholders by the noun that titles have for what they name.
_KINDS = (("gpu", "GPU", "GPU"), ("node", "node", "节点"), ("process", "(?:process|rank)", "(?:进程|rank)"), ("rank", "rank", "rank"),
          ("job", "job", "作业"), ("link", "link", "链路"), ("nic", "NIC", "网卡"), ("nvswitch", "NVSwitch", "NVSwitch"),
          ("object", "file system", "文件系统"))  # fmt: skip
# {perhaps} is empty of what is sure; elsewhere "probably" or "possibly", where it cannot be taken for a word of the name.
_NAMED = {
    "en": ("{where}: {perhaps} {what}", "{perhaps} {what}, on {where}", "there is {perhaps} {what}, on {where}"),
    "zh": ("{where}{perhaps}{what}", "{where}：{perhaps}{what}", "{where}上{perhaps}{what}",
           "{where}上{perhaps}出现{what}", "{where}{perhaps}出现{what}", "{where}{perhaps}发生{what}", "{where}上{perhaps}发生{what}"),
}  # fmt: skip
# Without the comma only behind a name that tells of nothing else that happened: "torn down after another fault on {gpu_1}".
_CLOSE = ("{perhaps} {what} on {where}", "there is {perhaps} {what} on {where}")
_ELSE = re.compile(r"\b(?:after|before|behind|by|from|since|until|when|while)\b", re.IGNORECASE)
_GROUP = {
    "en": ("{where}: {perhaps} {what}",),
    "zh": ("{where}：{perhaps}{what}", "{where}上{perhaps}出现{what}", "{where}{perhaps}{what}"),
}
_SURE = {"en": (), "zh": ("{where}的{what}", "{where}上的{what}")}
_BARE = {
    "en": ("{perhaps} {what}", "there is {perhaps} {what}", "there was {perhaps} {what}"),
    "zh": ("{perhaps}{what}", "{perhaps}出现{what}", "{perhaps}发生{what}", "出现了{what}"),
}
_OTHERS = re.compile(
    r"(?:\b(?:other|others|each|every|all|no|two|several)|其他|其它|其余|每个|每块|各|所有|另一|任一|多块|多个|同一) ?$",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(r"\b(?:has|have|is|are|was|were|does|do|did|can|could|must)\b")
_HEDGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "en": {"probable": ("probably",), "possible": ("possibly",)},
    "zh": {"probable": ("很可能",), "possible": ("可能", "或许")},
}
_LEADS: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    Kind.RULED_OUT: {"en": ("ruled out:", "ruled out"), "zh": ("已排除：", "已排除")},
    Kind.UNSEEN: {"en": ("not seen:", "could not see:"), "zh": ("未看到：", "无法查看：", "未能看到：")},
    Kind.UNDECIDED: {"en": ("undecided:",), "zh": ("尚未确定：", "未确定：")},
    Kind.DEED: {"en": ("",), "zh": ("",)},  # each says itself whether it was done
    Kind.OPEN: {"en": ("open:", ""), "zh": ("待办：", "")},
}
_NEXT = {
    "en": ("", "next:", "next", "do next:", "what to do:", "to do:", "the next step:", "please", "action:", "now:"),
    "zh": ("", "下一步：", "接下来：", "请", "请先", "建议：", "措施：", "处理：", "需要：", "应", "下一步请"),
}
_THEN = {"en": ("", "afterwards:", "then:", "after that:"), "zh": ("", "然后：", "之后：", "随后：", "此后：")}
_COMMAND = {
    "en": (": {}", "({})", "with {}", "with the command {}"),
    "zh": ("：{}", "（{}）", "，命令：{}", "，命令为 {}", "：命令 {}"),
}


_GENERAL = re.compile(r" (?:on|at|of|in) (?:an?|the) (?:GPU|node|job|rank)\b")  # of a name that has the very thing too


@lru_cache(maxsize=16384)
def words(text: str, lang: str) -> Words:
    """The words of a text as they are compared: all of them, and each comma ("no, action is needed"). A noun right before the placeholder
    of such a thing goes with it, its article too."""
    out: list[str] = []
    for token in _TOKEN[lang].findall(re.sub(r"[.。]\s*$", "", text)):
        low = token.lower().translate(_ALIKE)
        if low in _QUOTES:
            continue
        if low.startswith("{") and (noun := _noun(low, "en")):
            n = noun.count(" ") + 1
            if re.fullmatch(f"{noun}s?", " ".join(out[-n:]), re.IGNORECASE):
                del out[-n:]
                if out and out[-1] in _ARTICLES:
                    del out[-1]
        out.append(low)
    return tuple(out)


class Parts(NamedTuple):
    """What is told as one whole, in one sentence or in as many as it has: in several ways, each a row of sentences."""

    ways: tuple[tuple[Words, ...], ...]


NOTHING = Parts(())


@dataclass(frozen=True, slots=True)
class Statements:
    """All that may be told of one item."""

    names: frozenset[Words] = frozenset()  # each has the hedge that its certainty asks for
    bare: frozenset[Words] = frozenset()  # of the names those without the thing it is about
    codes: tuple[Words, ...] = ()  # codes, counts and times: in brackets behind the name
    measured: frozenset[Words] = frozenset()
    its: frozenset[Words] = frozenset()  # the same, of "it": only behind the name
    background: tuple[frozenset[Words], ...] = ()
    use: frozenset[Words] = frozenset()
    action: Parts = NOTHING
    then: tuple[Parts, ...] = ()
    points: bool = False  # the action says "this"
    listed: frozenset[Words] = frozenset()  # of what is no finding: behind its lead
    leads: tuple[Words, ...] = ()


@lru_cache(maxsize=2048)
def statements(item: Item, lang: str) -> Statements:
    """What may be told of `item`."""
    if item.kind is not Kind.FINDING:
        return Statements(
            listed=frozenset(words(x, lang) for x in _named(item, lang)),
            leads=tuple(words(x, lang) for x in _LEADS[item.kind][lang]),
        )
    names = {words(x, lang) for x in _named(item, lang)}
    coded = {(code, ":", *w) for w in names for code in item.codes if code not in w}
    about = frozenset((item.where, *item.members))
    measured = tuple(item.seen)
    act = " ".join(item.actions) if lang == "en" else "".join(item.actions)
    return Statements(
        names=frozenset(names | coded),
        bare=frozenset(w for w in names | coded if item.where and not about.intersection(w)),
        codes=tuple(_codes(item, lang)),
        measured=frozenset(words(y, lang) for x in measured for y in (x, x.removesuffix(": yes").removesuffix("：是"))),
        its=frozenset(words(y, lang) for x in measured for y in _its(x, item, lang)),
        background=tuple(_background(item, lang)),
        use=frozenset(words(x, lang) for x in _use(item, lang)),
        action=_parts(act, item, lang, _NEXT[lang], item.commands) if act else NOTHING,
        then=tuple(_parts(x, item, lang, _THEN[lang], item.commands) for x in item.then),
        points=_points(act, lang),
    )  # fmt: skip


def _noun(placeholder: str, lang: str) -> str:
    return next((en if lang == "en" else zh for begin, en, zh in _KINDS if placeholder.startswith("{" + begin)), "")


def _named(item: Item, lang: str) -> Iterator[str]:
    """What an item is called, with the very thing at each place that it may have, and with a doubt where it is not sure."""
    titles = [item.what, *(item.what.removeprefix(f"{c}{colon}").lstrip() for c in item.codes for colon in ":：")]
    for title in dict.fromkeys(titles):  # "XID 54: Auxiliary power is missing" without the code
        placed = (title, *(_in_place(title, item.where, lang) if not item.members else ()))
        general = tuple(_GENERAL.sub("", x, count=1) for x in placed) if lang == "en" else ()
        for what in dict.fromkeys((*placed, *general)):
            for doubt in _HEDGES[lang].get(item.certainty, ("",)):
                yield from _formed(what, item, doubt, lang)


def _formed(what: str, item: Item, doubt: str, lang: str) -> Iterator[str]:
    """A name in all its forms. A doubt at its beginning has a comma behind it: it is of all that follows."""
    forms, where = _BARE[lang], item.where
    if item.members:  # the title is of each of them
        forms = _GROUP[lang]
    elif where and where not in what:
        close = _CLOSE if lang == "en" and not _ELSE.search(what) else ()
        forms = (*forms, *_NAMED[lang], *close, *(_SURE[lang] if not doubt else ()))
    told = [(x, f"{doubt}," if doubt else "", doubt) for x in _articled(what, lang)]
    told += [(x, "", "") for x in _amid(what, where, doubt, lang)]
    for said, first, within in told:
        for form in forms:
            begins = form.startswith(("{perhaps} ", "{where}: {perhaps}"))
            yield (
                form.replace("{perhaps}", first if begins else within).replace("{what}", said).replace("{where}", where)
            )


def _amid(what: str, where: str, doubt: str, lang: str) -> Iterator[str]:
    """A name that is a clause, with a doubt behind its verb; in Chinese behind its subject."""
    if not doubt:
        return
    if lang == "zh":
        if where and what.startswith(where):
            yield where + doubt + what.removeprefix(where)
    elif (found := _AUXILIARY.search(what.partition(":")[0])) is not None:
        yield f"{what[: found.end()]} {doubt}{what[found.end() :]}"


def _articled(what: str, lang: str) -> Iterator[str]:
    """A name without its article, or with one where it has none."""
    yield what
    if lang == "en":
        first, _, rest = what.partition(" ")
        if first.lower() in _ARTICLES:
            yield rest
        else:  # not "the": that would be all of them, or a known one
            yield from (f"a {what}", f"an {what}")


def _in_place(text: str, where: str, lang: str, *, known: bool = False) -> Iterator[str]:
    """A text with the very thing in the place of its noun: "{gpu_1} has fallen off the bus". `known`: not in that of any such thing."""
    kind = _noun(where, lang)
    if not kind:
        return
    if lang == "zh":
        noun = rf"(?P<this>该|此) ?{kind} ?" if known else rf"(?P<this>该|此|一块|一个|某个|某块|某|有)? ?{kind} ?"
    else:
        noun = rf"\b(?:{'the |this ' if known else '(?:the |this |an? |one |some )?'}){kind}\b" + (
            r"(?! (?:kernel|error|fault|page))" if known else ""
        )
    found = re.search(noun, text, re.IGNORECASE)
    if found is not None and not _OTHERS.search(text[: found.start()]):
        yield text[: found.start()] + where + text[found.end() :]
        if lang == "zh" and found["this"]:
            yield text[: found.start()] + found["this"] + where + text[found.end() :]


def _codes(item: Item, lang: str) -> Iterator[Words]:
    """What may stand in brackets behind a name."""
    for code in item.codes:
        yield (code,)
    if item.count:
        yield from ((item.count, "times"),) if lang == "en" else ((item.count, "次"), ("共", item.count, "次"))
    if not item.times:
        return
    first, last = item.times[0], item.times[-1]
    once = first == last and not item.count
    if lang == "en":
        yield from ((first,), ("at", first)) if once else ()
        yield from (("first", first), ("first", "at", first))
        if last != first:
            yield from (
                ("last", last),
                ("last", "at", last),
                ("from", first, "to", last),
                ("between", first, "and", last),
            )
        return
    yield from ((first,), ("于", first)) if once else ()
    yield from (("首", "次", first), ("首", "次", "于", first), ("最", "早", "于", first))
    if last != first:
        yield from (("末", "次", last), ("末", "次", "于", last), ("最", "后", "一", "次", last), ("最", "后", "一", "次", "于", last),
                    ("从", first, "到", last), ("从", first, "至", last), ("自", first, "至", last))  # fmt: skip


def _its(text: str, item: Item, lang: str) -> Iterator[str]:
    """A measurement of the one thing that a finding is about, told of "it"."""
    if lang == "zh" or item.members or not item.where or text.count(item.where) != 1:
        return
    its = re.sub(rf"\b(?:the )?(\w+(?: \w+){{0,3}}) of {re.escape(item.where)}", r"its \1", text)
    yield its if its != text else text.replace(item.where, "it")


def _background(item: Item, lang: str) -> Iterator[frozenset[Words]]:
    for text in (y for x in item.background for y in sentences(x, lang)):
        yield frozenset(words(x, lang) for x in (text, *_in_place(text, item.where, lang, known=True)))


def _use(item: Item, lang: str) -> Iterator[str]:
    said, where = item.standing, item.where
    if not said or not where:
        return
    if lang == "zh":
        yield from (f"{where}{said}", f"{where}：{said}", f"{where}目前{said}")
        if said.startswith("请勿使用"):
            yield said.replace("请勿使用", f"请勿使用{where}", 1)
        return
    yield f"{where}: {said}"
    if said.startswith("do not use"):
        yield said.replace("do not use", f"do not use {where}", 1)
    else:
        yield from (f"{where} {said}", f"{where} is {said}", f"{where} are {said}")


def _parts(text: str, item: Item, lang: str, leads: Iterable[str], commands: Iterable[str]) -> Parts:
    """A whole of one or more sentences, behind each of its leads, and with the command behind it."""
    ways: list[tuple[Words, ...]] = []
    for whole in (text, *_in_place(text, item.where, lang, known=True)):
        told = sentences(whole, lang)
        every = [(" and " if lang == "en" else sign).join(commands) for sign in ("、", "和")]
        ends = ["", *(form.format(c) for c in dict.fromkeys(every) if c for form in _COMMAND[lang])]
        for lead in leads:
            for end in ends:
                made = list(told)
                made[-1] = re.sub(r"[.。]$", "", made[-1]) + (f" {end}" if end else "")
                made[0] = f"{lead} {made[0]}"
                ways.append(tuple(words(x, lang) for x in made))
    return Parts(tuple(ways))


def _points(text: str, lang: str) -> bool:
    """Whether a text says "this" of something that was told before it."""
    pointing = r"该|此(?!外)|其(?!他|余)|它|这" if lang == "zh" else r"\b(?:this|these|those)\b"
    return re.search(pointing, text, re.IGNORECASE) is not None
