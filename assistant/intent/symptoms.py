"""Symptoms named in a sentence: by the words of their phrases, in any order, synonyms counted as the same word."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from assistant.find.tokens import STOP, stem
from assistant.intent.phrases import split
from assistant.intent.tables import tables
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

LONG = (
    5  # characters of a Han phrase that may go over a comma: a shorter one is made of pieces of two clauses too easily
)
_CLAUSES = lazy("[,;.，；。]|但是?|不过|却")
_SLACK = 5  # words that may stand between those of a phrase
_PARTICLES = frozenset("的了吗呢啊呀吧很太好都就又还在有个这那一直总老是地得着过我我们")
_SMALL = STOP - {"up", "who"} | frozenset(
    ["my", "our", "very", "so", "really", "just", "keep", "keeps", "kept", "get", "gets", "getting", "got"]
)
_STATES = frozenset(["drained", "cordoned", "tainted"])  # how a node is found, not what is to be done with it
_ITSELF = frozenset(["0", "100"])  # numbers that a phrase means as they are: nothing, and all of it
_CODED = frozenset(["code", "exitcode", "error", "signal", "status"])  # words before a number that is a name
ANY = "<n>"  # what any other number of a phrase stands for
_SERVERS = frozenset(["vllm", "sglang", "tritonserver", "trtllm"])  # programs that do nothing but serve models
_SAME = ("slow", "hang", "crash", "train")  # classes of the lexicon whose words stand for one another


def find(words: Sequence[str], text: str = "") -> tuple[str, ...]:
    """Ids of the symptoms that the words of a sentence name, the fullest match first. `text`: the sentence, where it may be
    more than a clause."""
    found = _named(words, text)
    if _REBOOTS in found and (bare := _AFTER_REBOOT.sub(" ", text or "".join(words))) != (text or "".join(words)):
        from assistant.intent.grammar import words_of

        if _REBOOTS not in _named(words_of(bare), bare):
            found = tuple(name for name in found if name != _REBOOTS)
    return found


def _named(words: Sequence[str], text: str) -> tuple[str, ...]:
    return _found(words, text, tables()["signs"], tables()["sign_words"], _synonyms())


_REBOOTS = "node-unreachable"
# since when something is so: nobody says that the node reboots by itself
_AFTER_REBOOT = lazy("重启(?:以|之|完|过|了)?后|重启过?了?[一二两三四五六几多好0-9]+[次遍回]了?|重启过")
# power dropped from 650 W | clocks fell to 1200 | 功率从600W掉到130W: a value went down, and no GPU was lost
_VALUE_FELL = lazy(
    r"(?<![a-z])(?:power|draw|watts|clocks?|frequency|util\w*|usage|speed|throughput|tokens?/s|temp\w*|memory)(?![a-z])[^,.;?]{0,24}?(?<![a-z])(?:dropp?(?:s|ed|ing)?|fell|falls?)(?![a-z])"
    r"|(?:功[耗率]|频率|时钟|主频|利用率|速度|吞吐|温度|显存)[^，。；？]{0,12}?[掉跌降]"
    r"|(?<![a-z])(?:dropp?(?:s|ed|ing)?|fell|falls?)(?![a-z])\s(?:from|to|by|below|under)\s[0-9]|[掉跌降][到至]\s?[0-9]",
    re.IGNORECASE,
)
# nvidia-smi 看着没毛病 | No running processes found | Remapping Failure Occurred: what it shows, and no GPU that it lacks
_NO_TROUBLE = lazy(
    r"(?:其[他它余]|别的)(?:的?(?:卡|gpu))?(?:都|也)?没有|[没无]有?(?:什么|啥|任何|看到|看出|发现|明显)*(?:毛病|问题|异常|故障|报错|错误|告警|进程|任务)|(?<![a-z])no (?:running )?process(?:es)?(?: found)?(?![a-z])|(?<![a-z])(?:row )?remap(?:ping|per)? fail\w*(?: occurr?ed)?",
    re.IGNORECASE,
)
_LOST = frozenset(["gpu-lost", "gpu-missing"])


def of_gpus(signs: tuple[str, ...], text: str) -> tuple[str, ...]:
    """`signs` without the loss of a GPU where all that went down is a value."""
    if _LOST.isdisjoint(signs) or not (_VALUE_FELL.search(text) or _NO_TROUBLE.search(text)):
        return signs
    from assistant.intent.grammar import words_of

    left = _NO_TROUBLE.sub(" ", _VALUE_FELL.sub(" ", text))
    still = find(words_of(left), left)
    return tuple(s for s in signs if s not in _LOST or s in still)


# all reduce is 2x slower than yesterday | all-gather 20% slower | all reduce 比昨天慢: it is the collective that is slow
_SLOW_COLLECTIVE = lazy(
    r"(?<![a-z])(?:all[ -]?reduces?|all[ -]?gathers?|reduce[ -]?scatters?|all[ -]?to[ -]?alls?|busbw|collectives?)(?:\s+(?:is|are|was|got|gets|runs|has become|now|still|about|around|only|[0-9.]+\s?(?:x|%|times|fold)?))*\s+(?:slow|slower)(?![a-z])"
    r"|(?:all[ -]?reduce|all[ -]?gather|reduce[ -]?scatter|集合通信)[^，。；,;]{0,8}慢",
    re.IGNORECASE,
)


def of_collectives(signs: tuple[str, ...], text: str) -> tuple[str, ...]:
    """`signs` with the network in the place of a slow training where what is slow is a collective."""
    if "slow-training" not in signs or not _SLOW_COLLECTIVE.search(text):
        return signs
    from assistant.intent.grammar import words_of

    left = _SLOW_COLLECTIVE.sub(" ", text)
    still = find(words_of(left), left)
    return tuple(dict.fromkeys(("network-trouble", *(s for s in signs if s != "slow-training" or s in still))))


def without(clauses: Sequence[str]) -> tuple[str, ...]:
    """The clauses that name no symptom."""
    from assistant.intent.grammar import words_of

    return tuple(c for c in clauses if not find(words_of(c)))


def pointed(words: Sequence[str], text: str = "") -> tuple[str, ...]:
    """Ids of the hypotheses that the words point at, the fullest match first. No synonyms: "kill task failed" is no crash."""
    return _found(words, text, tables()["points"], tables()["point_words"], {})


def _found(
    words: Sequence[str],
    text: str,
    phrases: Sequence[tuple[str, str, bool]],
    by_word: Mapping[str, list[int]],
    same: Mapping[str, str],
) -> tuple[str, ...]:
    from assistant.intent.grammar import words_of

    english = _content([w.strip("<>") for w in words if w.isascii() and w not in ("<xid>", "<sxid>")], same)
    han = [_in_han(words)]
    clauses = [_in_han(words_of(c)) for c in _CLAUSES.split(text)] if not text.isascii() else han
    numbers = {w for w in words if w[:1].isdigit()}
    if numbers or any(w[:1] == "<" for w in words):
        numbers.add(ANY)
    best: dict[str, int] = {}
    for number in sorted({n for word in {*english, *han[0], *numbers} for n in by_word.get(word, ())}):
        entry, joined, is_han = phrases[number]
        phrase = joined.split(" ")
        if best.get(entry, 0) >= len(phrase):
            continue
        within = clauses if len(phrase) < LONG else han
        if _in_han_of(phrase, within, numbers) if is_han else _near(phrase, english, numbers):
            best[entry] = len(phrase)
    return tuple(sorted(best, key=lambda name: -best[name]))


def _in_han_of(phrase: Sequence[str], within: Sequence[Sequence[str]], numbers: Collection[str]) -> bool:
    """Whether a Han phrase stands in one of the clauses, and its numbers ("退出码 137") anywhere."""
    said = [w for w in phrase if not w.isdigit()]
    return all(w in numbers for w in phrase if w.isdigit()) and any(_in_order(said, w) for w in within)


def _in_han(words: Sequence[str]) -> list[str]:
    return [w for w in words if not w.isascii() or w.isalpha()]


def served(found: Sequence[str], words: Sequence[str], programs: Sequence[str]) -> tuple[str, ...]:
    """`found`, where what is slow is a model server by name: that comes first, for it tells more of itself than a job."""
    slow = "slow-training" in found or (not found and "慢" in words)
    if not slow or "slow-serving" in found or _SERVERS.isdisjoint(name.casefold() for name in programs):
        return tuple(found)
    return ("slow-serving", *found)


def _near(phrase: Sequence[str], words: Sequence[str], numbers: Collection[str]) -> bool:
    """All words of the phrase close to one another, in whatever order, and its numbers somewhere."""
    if not all(w in words or w in numbers for w in phrase):
        return False
    phrase = [w for w in phrase if w.isalpha()]
    wide = len(phrase) + _SLACK
    if len(words) <= wide:
        return True
    wanted = set(phrase)
    return any(wanted <= set(words[at : at + wide]) for at in range(len(words) - wide + 1))


def _in_order(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """The characters of a Han phrase in their order, little between them."""
    first = phrase[0]
    for start, word in enumerate(words):
        if word != first:
            continue
        at, done = start, True
        for wanted in phrase[1:]:
            upto = min(len(words), at + _SLACK + 1)
            at = next((i for i in range(at + 1, upto) if words[i] == wanted), -1)
            if at < 0:
                done = False
                break
        if done and at - start < len(phrase) + _SLACK:
            return True
    return False


def content(phrase: str, lang: str, *, merged: bool = True) -> list[str]:
    """The words of a phrase of the data that a sentence must hold; none when they are too few to tell anything.

    `merged`: synonyms are one word.
    """
    raw = split(phrase.casefold())
    words = (
        [w for w in raw if w not in _PARTICLES]
        if lang == "zh"
        else list(dict.fromkeys(_content(raw, _synonyms() if merged else {})))
    )
    if lang != "zh" and words:
        words += dict.fromkeys(map(_number, raw, ("", *raw)) if merged else ())
    return [w for w in words if w] if len(words) >= (2 if lang == "zh" else 1) else []


def _number(word: str, before: str) -> str:
    """What a number in a phrase asks for: itself where it says something, else any number; nothing for a word."""
    if not word[:1].isdigit():
        return ""
    return word if word in _ITSELF or before in _CODED else ANY


def _content(words: Sequence[str], same: Mapping[str, str]) -> list[str]:
    """The words that say something, each as the one that stands for its synonyms."""
    said = [w for w in words if w not in _SMALL and w.isalpha()]
    return [w if w in _STATES else same.get(w) or same.get(stem(w)) or stem(w) for w in said]


@cache
def _synonyms() -> dict[str, str]:
    out: dict[str, str] = {}
    for name in _SAME:
        for text in lexicon().classes.get(name, ()):
            if text.isascii() and text.isalpha():
                out.setdefault(text, name)
                out.setdefault(stem(text), name)
    return out
