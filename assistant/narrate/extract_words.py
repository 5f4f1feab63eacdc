"""The two languages as `assistant.narrate.extract` compares them: what holds a sentence together, what turns its sense, what joins."""

# ruff: noqa: SIM905
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_TOKEN = {
    "en": re.compile(r"\{[^{}]*\}|[A-Za-z]+(?:['’-][A-Za-z]+)*|\S"),
    "zh": re.compile(r"\{[^{}]*\}|[A-Za-z]+(?:['’_-][A-Za-z]+)*|\S"),
}
STOPS = frozenset(",;:()（），；：、.。")
_AND = frozenset(
    "cannot can is are was were has have had it they the a does do never no goes must may often its this waits".split()
)


class Word(NamedTuple):
    """A word as it is compared, and which clause of its sentence it stands in; below zero within brackets."""

    said: str
    clause: int


def _rows(rows: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row.split()) for row in rows.strip().split("\n"))


def _joining(none: str, on: str, back: str, *, han: bool = False) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Phrases with what they say of cause; of Han every sign is a word."""
    kinds = ((none, ""), (on, "on"), (back, "back"))
    made = [(p, cause) for rows, cause in kinds for p in (rows.split() if han else rows.strip().split("\n"))]
    doubtful = [
        (p.replace("explain", f"{doubt} explain"), c)
        for p, c in made
        for doubt in ("probably", "possibly")
        if "explain" in p
    ]
    return tuple((tuple(p) if han else tuple(p.split()), cause) for p, cause in made + doubtful)


@dataclass(frozen=True)
class Tongue:
    """One language. All words are compared in small letters."""

    lang: str
    free: frozenset[str]  # may be added and left out: they say nothing of their own
    turns: frozenset[str]  # where ours has them, in what is told of it, they are told
    conditions: frozenset[str]  # where ours has them anywhere, they are told; and an "or" that ends a list
    ifs: frozenset[str]  # of these, what makes its clause a condition: never told alone
    thens: frozenset[str]  # begin what follows from a condition, in the same clause
    hedges: frozenset[str]
    doubting: frozenset[str]  # of the hedges those that show a doubt: of Han the sign that ends one
    pointers: tuple[str, ...]  # words that point to something said before: told only behind it
    before: frozenset[str]  # words behind which the thing itself may be named
    anew: frozenset[str]  # begin a clause that is no further part of a list
    suches: frozenset[str]  # begin examples
    verbless: frozenset[str]  # begin a sentence without a verb: "usually a bad pointer"
    use: tuple[str, ...]  # what tells something good of use
    single: frozenset[str]  # words that join or lead in
    phrases: tuple[tuple[tuple[str, ...], str], ...]  # the same of several words, and what says something of cause
    beings: tuple[tuple[str, ...], ...]  # how a thing is told to be: "came up"
    counting: frozenset[str]  # stand beside a code, a time or a count
    things: frozenset[str]  # the subject of "can go on being used"
    doubts: tuple[str, ...] = ()  # how a sentence shows that it is not sure
    usable: str = ""  # how "use" begins where something can be used
    every: bool = False  # whether a word may be matched with a later one of the same look
    participles: tuple[tuple[str, str], ...] = ()

    def words(self, text: str, *, deed: bool = False) -> tuple[Word, ...]:
        """The words of a text, stops among them."""
        return _words(text, self.lang, deed)

    def joined(self, words: tuple[Word, ...]) -> str:
        """As a text."""
        return ("" if self.lang == "zh" else " ").join(w.said for w in words)

    def same(self, one: tuple[Word, ...], n: int, other: tuple[Word, ...], k: int) -> bool:
        """Whether two words are the same; of Han each stands beside a neighbour that is the same too."""
        a, b = one[n].said, other[k].said
        if a != b:
            return self.lang == "en" and a.isalpha() and b.isalpha() and a.removesuffix("s") == b.removesuffix("s")
        if self.lang == "en" or not "\u3400" <= a <= "\u9fff" or a in self.free:
            return True
        before = n > 0 and k > 0 and one[n - 1].said == other[k - 1].said
        after = n + 1 < len(one) and k + 1 < len(other) and one[n + 1].said == other[k + 1].said
        return before or after

    def ends(self, words: tuple[Word, ...], n: int) -> bool:
        """Whether an extract may end with this word."""
        if n + 1 == len(words) or words[n].said in STOPS:
            return True
        return bool(self.joins(words, n + 1)) or self.lang == "zh"

    def joins(self, words: tuple[Word, ...], at: int) -> list[tuple[int, str]]:
        """What joins or leads in at this place: its length, and what it says of cause: nothing, that what stands before causes what
        follows ("on"), or the other way ("back")."""
        out = [(len(p), cause) for p, cause in self.phrases if self._is(p, words, at)]
        if words[at].said in self.single or words[at].said in STOPS:
            out.append((1, ""))
        longest = max((n for n, _ in out), default=0)  # "because of it" is no "because"
        return [x for x in out if x[0] == longest]

    def being(self, words: tuple[Word, ...], at: int) -> int:
        """The length of "came up" and the like at this place; 0 when it is something else."""
        return max((len(p) for p in self.beings if self._is(p, words, at)), default=0)

    def counts(self, words: tuple[Word, ...], at: int, codes: frozenset[str]) -> bool:
        """Whether a word such as "times" stands beside a code, a time or a count."""
        return words[at].said in self.counting and any(w.said in codes for w in words[max(0, at - 2) : at + 3])

    @staticmethod
    def _is(phrase: tuple[str, ...], words: tuple[Word, ...], at: int) -> bool:
        return tuple(w.said for w in words[at : at + len(phrase)]) == phrase

    def apart(self, sentence: str) -> tuple[str, ...]:
        """A sentence, and the parts of it that stand by themselves."""
        first = self.words(sentence)[0].said
        if first in self.ifs or sentence[:1] in self.ifs:
            return (sentence,)
        parts = re.split(r"[；：]" if self.lang == "zh" else r"; |: ", sentence)
        if self.lang == "en" and not any(w.said in self.conditions or w.said == "or" for w in self.words(sentence)):
            parts += [x[1] for part in parts if (x := re.split(r",? (?:and|but) (?=the\b)", part, maxsplit=1))[1:]]
        return (sentence, *parts) if len(parts) > 1 else (sentence,)

    def points(self, text: str) -> bool:
        """Whether a text points to something that was said before it."""
        if self.lang == "zh":
            return re.search("|".join(self.pointers), text) is not None
        return any(w.said in self.pointers for w in self.words(text))

    def begins(self, text: str) -> bool:
        """Whether a text begins with a word that points to something before it."""
        if self.lang == "zh":
            return re.match(f".{{0,3}}(?:{'|'.join(self.pointers)})", text) is not None
        return any(w.said in self.pointers for w in self.words(text)[:2])

    def orders(self, sentence: str) -> tuple[str, ...]:
        """What a sentence tells to do, one by one."""
        if self.lang == "zh":
            return (sentence,) if sentence[:1] in self.ifs else tuple(p for p in sentence.split("；") if p)
        return tuple(sentence.split("; "))

    def passive(self, deed: str) -> tuple[str, ...]:
        """ "Reset the GPU ..." as "the GPU is to be reset ..."."""
        found = re.fullmatch(r"([A-Z][a-z]+) ((?:the|its) \w+)((?: (?!and\b).*)?)", deed.rstrip("."))
        done = dict(self.participles).get(found[1].lower()) if found else None
        if not found or done is None or " and " in deed or "," in deed:
            return ()
        return tuple(
            f"{found[2]} {be} {done}{found[3]}"
            for be in ("is to be", "should be", "has to be", "must be", "needs to be")
        )

    def pronouns(self, text: str, where: str) -> tuple[str, ...]:
        """A measurement of the thing that the finding is about, told of "it"."""
        if self.lang == "zh" or not where.startswith("{") or where not in text:
            return ()
        its = re.sub(rf"\b(?:the )?(\w+(?: \w+){{0,3}}) of {re.escape(where)}", r"its \1", text)
        return (its, text.replace(where, "it")) if its != text else (text.replace(where, "it"),)

    def calls(self, noun: str, placeholder: str) -> bool:
        """Whether `noun` is the one for what a placeholder names: "the job {job_1}"."""
        return any(
            placeholder.startswith("{" + begin) and noun.rstrip("s") in names[0].lower() for begin, names in _KINDS
        )

    def standing(self, text: str, where: str) -> tuple[str, ...]:
        """ "Do not use until ..." with what is not to be used."""
        lead = "请勿使用" if self.lang == "zh" else "do not use"
        return (text.replace(lead, f"{lead} {where}", 1),) if text.startswith(lead) and where else ()

    def in_place(self, text: str, where: str, *, known: bool = False) -> tuple[str, ...]:
        """A text with the very thing in the place of its noun: "{gpu_1} has fallen off the bus". `known`: not in that of any such thing."""
        kind = next((words for begin, words in _KINDS if where.startswith("{" + begin)), ("", ""))[self.lang == "zh"]
        noun = (
            rf"(?:该|一块|某|一个)?{kind} ?"
            if self.lang == "zh"
            else rf"\b(?:{'the |this ' if known else 'the |this |an? |one |some '}){'' if known else '?'}{kind}s?\b(?! (?:kernel|error|fault|page))"
        )
        made = re.sub(noun, where, text, count=1, flags=re.IGNORECASE) if kind else text
        return (made,) if made != text else ()

    def named(self, what: str, where: str) -> tuple[str, ...]:
        """What a finding is called, with the very thing in it."""
        found = self.in_place(what, where)
        if self.lang == "zh":
            return (f"{where}{what}", f"{where}：{what}", *found)
        short = [
            re.sub(r" (?:on|at|of|in) (?:an?|the) (?:GPU|node|job|rank)\b", "", x, count=1) for x in (what, *found)
        ]
        return (f"{where} {what}", f"{what} on {where}", *found, *short)


# Placeholders by the noun that titles have for what they name.
_KINDS = (("gpu", ("GPU", "GPU")), ("node", ("node", "节点")), ("process", ("(?:process|rank)", "(?:进程|rank)")), ("rank", ("rank", "rank")),
          ("job", ("job", "作业")), ("link", ("link", "链路")), ("nic", ("NIC", "网卡")), ("nvswitch", ("NVSwitch", "NVSwitch")),
          ("object", ("file system", "文件系统")))  # fmt: skip


@lru_cache(maxsize=8192)
def _words(text: str, lang: str, deed: bool) -> tuple[Word, ...]:
    out: list[Word] = []
    clause = most = 0
    outer: list[int] = []  # what a bracket stands in goes on behind it
    found = _TOKEN[lang].findall(text)
    for n, token in enumerate(found):
        low = token.lower().replace("’", "'")
        if low in (".", "。") and n + 1 == len(found):
            continue
        told = low == "and" and n + 1 < len(found) and found[n + 1].lower() in _AND
        if lang == "en" and not deed and told:
            clause = most = most + 1
        out.append(Word(low, clause))
        if low in ("(", "（"):
            outer.append(clause)
        if low in (")", "）") and outer:
            clause = outer.pop()
        elif low in STOPS:
            most += 1
            clause = -most if outer else most  # below zero within brackets
    return tuple(out)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


EN = Tongue(
    "en",
    free=_set("""a an the is are be being am has have do does there
    here on at of in for to with by from as which who whose also then while but too , : ; ( ) . ' " - – —"""),
    turns=_set("""not no never nothing none nobody neither nor without cannot can't don't doesn't didn't isn't aren't wasn't won't only all any every
    each both several many most more less least fewer few than or either if when whenever unless until once before after again next new may might
    can could should must would usually usual often sometimes always typically probably possibly perhaps likely yet except instead rather almost
    enough first last out same other others own"""),
    conditions=_set("if when whenever unless until once either usually usual sometimes may might could typically probably possibly"),
    ifs=_set("if when whenever unless until once"),
    thens=frozenset(),
    doubting=_set("probably possibly likely perhaps may might could"),
    pointers=("it", "its", "they", "them", "their", "this", "that", "these", "those", "he", "his", "him", "one"),
    before=_set("on of at in for"),
    anew=_set("so which while but whereas and"),
    suches=_set("often such for mostly"),
    verbless=_set("usually almost often mostly sometimes"),
    use=("can go on", "goes on", "go on", "new job", "healthy", "can be used", "needs nothing", "nothing is lost", "no errors", "links up"),
    hedges=_set("probably possibly likely perhaps may might could"),
    single=_set("and but while whereas then which also as meanwhile next please first finally afterwards still - – —"),
    phrases=_joining("""
as well
in turn
in addition
what comes next is to
what comes next :
the next step is to
the next step :
the action :
to do :
at the same time
this came
it came
""", """
so
therefore
thus
hence
that explains why
that explains
this explains why
this explains that
this explains
it explains why
it explains
they explain why
they explain
which explains why
which explains that
which explains
explains why
explains
explain
this led to
it led to
that led to
which led to
led to
for this reason
for that reason
because of it
because of that
because of this
as a result
as a consequence
is the reason why
is why
""", """
because
because of
since
due to
the cause is that
the reason is that
"""),
    beings=_rows("""
came up
there is
there are
there was
there were
was found
were found
was reported
was recorded
occurred
"""),
    counting=_set("times from to last at since first on"),
    things=_set("gpu gpus node server machine link system job application process rank file"),
    doubts=(" probably ", " possibly ", " likely ", " perhaps ", " may ", " might "),
    usable="can ",
    participles=(("reset", "reset"), ("restart", "restarted"), ("reboot", "rebooted"), ("drain", "drained"), ("inspect", "inspected"),
                 ("replace", "replaced"), ("check", "checked"), ("update", "updated"), ("raise", "raised"), ("lower", "lowered")),
)  # fmt: skip
ZH = Tongue(
    "zh",
    free=_set("的 了 在 于 与 和 及 并 也 还 就 将 被 把 对 为 是 有 该 个 上 中 里 着 过 且 但 则 请 向 , ， ： ； （ ） 、 。 ( ) : ; . ' \" - — “ ”"),
    turns=_set("不 未 无 没 非 勿 别 仅 只 全 都 每 各 若 当 直 后 前 再 下 可 能 会 或 除 少 多 更 最 必 须 应 曾 总 常 否 难 停 止 已 任 何 两 首 末 同 另"),
    conditions=_set("若 当 直"),
    ifs=_set("若 当 直"),
    thens=_set("则 就"),
    doubting=_set("能 许 概"),
    pointers=("这(?!个|些|种|块|台)", "其(?!他|余)", "它", "此(?!外)"),
    before=_set("在 的 于 对 将 把 使 为"),
    anew=_set("但 而 所 因 并 且"),
    suches=_set("常 如 例 多"),
    verbless=frozenset(),
    use=("可以", "继续", "新作业", "健康", "无需", "正常", "无错误"),
    hedges=_set("很 可 能 或 许 大 概 也"),
    single=_set("， ； ： 、 （ ） 并 而 且 但 请 再 即 又 亦"),
    phrases=_joining(
        "同时 随后 然后 接下来 接着 此外 另外 应 需 需要 请先 下一步 下一步是 措施 措施是 其中 目前 现在 建议 命令为",
        "因此 所以 导致 导致了 这导致 这导致了 解释了 这解释了 这也解释了 也解释了 可解释 由此 因而 故而 从而 于是 为此 故 结果",
        "因为 由于 是因为 这是因为 原因是", han=True,
    ),
    beings=tuple(tuple(p) for p in "出现 出现了 发生 发生了 有 报告 报告了 记录了 存在 上报了".split()),
    counting=_set("共 次 首 末 最 后 一 于 至 从 起 到 时 累 计 自"),
    things=_set("节 点 链 路 系 统 进 程 作 业 应 用 机 器 服 务 卡 gpu"),
    doubts=("可能", "或许", "大概", "也许"),
    usable="可以",
    every=True,
)  # fmt: skip
TONGUES = {"en": EN, "zh": ZH}
