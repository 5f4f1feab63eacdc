"""Who is blamed for what: a causal sentence must say what the explains-graph says, in its direction.

A connective parts a sentence into a cause side and an effect side. Each side is compared with what the cited findings are
called: a finding may be blamed for another only when it explains it, and said to be sure only when it is not merely "may explain".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assistant.narrate import lexicon as lex
from assistant.narrate.freewords import WEAK
from assistant.narrate.material import Item, Kind
from assistant.narrate.phrases import all_else
from assistant.narrate.sentence import Sentence
from assistant.narrate.vocabulary import common, implied, negated_at, plain, stemmed, with_alike, words_of
from assistant.narrate.wording import folded, marks

# Effect first, then cause. The longer phrases stand first.
_BACK_EN = re.compile(
    r"\b(?:because of|because|due to|owing to|(?:is|are|was|were|been|being) (?:also |partly |likely |probably |possibly )?"
    r"(?:caused|explained|triggered|produced|brought on) by|caused by|explained by|triggered by|results? from|resulted from|follow(?:s|ed)? from|"
    r"comes? from|came from|stems? from|stemmed from|thanks to|"
    r"(?:an? |the )?(?:direct |mere |only )?(?:consequence|symptom|fallout|result|side effect|echo|aftermath|effect|victim|follow-up)s? (?:of|from|on)|"
    r"attributed to|in response to|driven by|as a result of)\b"
)
# Cause first, then effect.
_ON_EN = re.compile(
    r"\b(?:(?<!root )(?<!the )(?<!a )(?<!no )(?<!usual )(?<!common )causes?|caused|causing|explains?|explained|explaining|accounts? for|leads? to|led to|leading to|triggers?|triggered|triggering|"
    r"(?:makes?|made)(?= [^,]*\b(?:fall|fail|hang|wait|slow|hot|idle|time out|crash|stop|jitter|lose)[a-z]*\b)|results? in|resulted in|resulting in|brings? about|brought about|"
    r"(?:is|are|was|were) (?:the )?(?:reason|cause|source|origin|culprit)s? (?:of|for|behind)|"
    r"(?:is|are|was|were) (?:to blame|responsible) for|(?:is|are|was|were) behind|which is why|that is why|therefore|thus|hence|"
    r"consequently|accordingly|so that|(?<=, )so|(?<=and )so|^so|as a result|as a consequence|for (?:this|that) reason)\b"
)
_TOO_EN = re.compile(r"(.+) too (?:small|low|little|few) for (.+)")
_AS_EN = re.compile(
    r"(?:as|since) (?!a result|a consequence|soon|long|far|if|the (?:log|report)|\{document|\{f|the driver was)(.+?), (.+)"
)
_BEFORE = frozenset(("therefore", "thus", "hence", "consequently", "accordingly"))
_OF_EN = re.compile(r"\bthe (?:root )?(?:cause|reason|source|origin) (?:of|for|behind) (.+?) (?:is|are|was|were) (.+)")
_SOFT = frozenset(
    ("so", "so that", "therefore", "thus", "hence", "accordingly", "makes", "make", "made")
)  # lead to a deed as well
_BLAME_EN = re.compile(
    r"\b(?:causes?|culprits?|blame[ds]?|responsible|root|reasons?|origins?|sources?|guilty|at fault|fallout|consequences?|symptoms?|victims?|follow-up)\b"
)
_BY_ZH = re.compile(
    r"(?P<effect>.*?)(?:是|也)*(?:由于|由|因为|因|源于|来自)(?P<cause>.+?)(?:所)?(?:引起|导致|造成|引发|触发|所致|而起|而)(?P<more>.*)"
)
_ON_ZH = re.compile(r"导致|引起|引发|造成|使得|使(?!用)|解释了|可解释|因此|因而|所以|从而|以致")
_IT_ZH = re.compile(r"(?P<effect>.+?)(?:都|也|均)?是(?P<cause>它|此|其|这)(?:所)?(?:造成|引起|导致)的?$")
_FOR_ZH = re.compile(r"(?P<cause>.+?)对(?P<effect>.+?)(?:而言|来说)?(?:过小|过低|太小|太低)")
_ON_TO_ZH = re.compile(r"(?P<effect>.*?)因(?P<cause>[^，。]{2,8}?)(?P<more>对.+)")
_START_ZH = re.compile(r"^(?:由于|因为)(?P<cause>[^，,]+)[，,](?P<effect>.+)")
_REASON_ZH = re.compile(r"(?P<effect>.+?)的?(?:根本)?原因(?:是|为|在于)(?P<cause>.+)")
_OF_ZH = re.compile(r"(?P<effect>.+?)(?:同样|也|都|均|只)?(?:是|属于)(?P<cause>.*?)的?(?:后果|结果|症状|影响)")
_BLAME_ZH = ("原因", "根源", "根因", "起因", "元凶", "祸首", "后果", "症状", "受害")
_BECAUSE_ZH = ("因", "由于", "导致", "引起", "引发", "造成", "所以", "使得")


@dataclass(frozen=True, slots=True)
class Link:
    """Something that is blamed for something."""

    cause: str
    effect: str
    soft: bool = False


def blame(s: Sentence) -> str:
    """What is wrong with the causal part of a sentence; empty when nothing is, or when it has none."""
    if all_else(s):
        return ""
    links = list(_links_zh(s.text) if s.lang == "zh" else _links_en(s.text))
    for link in links:
        if wrong := _judged(s, link):
            return wrong
    return "" if links else _named(s)


def _links_en(text: str, source: bool = False) -> Iterable[Link]:
    low = text.lower().rstrip(".")
    if found := _AS_EN.match(low):
        yield Link(found[1], found[2])
    if source and (found := _TOO_EN.search(low)):
        yield Link(found[1], found[2])
    if found := _OF_EN.search(low):
        yield Link(found[2], found[1])
        return
    taken: list[tuple[int, int]] = []
    for m in _BACK_EN.finditer(low):
        taken.append(m.span())
        if not low[: m.start()].strip(" ,"):  # because of A, B
            cause, _, effect = low[m.end() :].partition(",")
            yield Link(cause, effect)
        elif pointed := re.match(r" ?(?:it|this|that)\b(?=[ ,]*$|,)", low[m.end() :]):
            yield Link("it", low[: m.start()] + low[m.end() + pointed.end() :])
        else:
            before, after = low[: m.start()], re.split(r", (?:so|not|and)\b|;", low[m.end() :])[0]
            yield Link(after, before)
    for m in _ON_EN.finditer(low):
        if any(a <= m.start() < b for a, b in taken) or (
            low[m.start() : m.end()].startswith("so") and low[m.start() - 3 : m.start()] == "so "
        ):
            continue
        if m[0] == "so" and low[m.end() : m.end() + 5] in (" far ", " as t"):
            continue
        ahead = low[: m.start()]
        told_before = (m[0] in _BEFORE and "," not in ahead) or not low[m.end() :].strip()
        yield Link(
            "this" if told_before else ahead,
            f"{ahead} {low[m.end() :]}" if told_before else low[m.end() :],
            m[0] in _SOFT,
        )


def _links_zh(text: str, source: bool = False) -> Iterable[Link]:
    text = text.rstrip("。")
    for pattern in (*((_FOR_ZH,) if source else ()), _IT_ZH, _START_ZH, _REASON_ZH, _OF_ZH):
        if (m := pattern.match(text)) and m["cause"].strip():
            yield Link(m["cause"], m["effect"])
            return
    if source and (m := _ON_TO_ZH.match(text)):
        yield Link(m["cause"], f"{m['effect']} {m['more']}")
        return
    if m := _BY_ZH.match(text):
        yield Link(m["cause"], f"{m['effect']} {m['more']}")
        return
    for m in _ON_ZH.finditer(text):
        before, soft = text[: m.start()], m[0] in ("因此", "因而", "所以", "从而", "使得", "使")
        if (
            soft and not m[0].startswith("使") and before[-1:] not in ("，", "") and "，" not in before
        ):  # A 因此 B: of what was told before
            yield Link("此", f"{before} {text[m.end() :]}", soft)
        else:
            yield Link(before, text[m.end() :], soft)


# --- whether it is so ---------------------------------------------------------------------


def _judged(s: Sentence, link: Link) -> str:
    findings = [i for i in s.items if i.kind is Kind.FINDING]
    best, worst = 0.0, 0.0
    hedge_needed = False
    for a in findings:
        for b in findings:
            sure, maybe = b.id in s.material.reaches(a.id), b.id in a.may_explain
            if a.id == b.id or not (sure or maybe):
                continue
            right, wrong = _fits(s, link, a, b)
            if right > best:
                best, hedge_needed = right, maybe and not sure
            worst = max(worst, wrong)
    if best > worst:
        return "surer than the finding: may explain" if hedge_needed and not _hedged(s) else ""
    if worst > 0:
        return "the order of blame is turned round, or not clear"
    return "" if _within(s, link, findings) else "a cause that no cited finding gives"


def _hedged(s: Sentence) -> bool:
    return any(w in s.text for w in lex.ZH_HEDGES) if s.lang == "zh" else bool(set(s.low) & lex.STRONG_HEDGES)


def _fits(s: Sentence, link: Link, a: Item, b: Item) -> tuple[float, float]:
    """How well the link says that `a` explains `b`, and that `b` explains `a`: by their names, else by all their words."""
    for wide in (False, True):
        right, wrong = _fit(s, link, a, b, wide), _fit(s, link, b, a, wide)
        if right != wrong:
            return right, wrong
    return right, wrong


def _own(item: Item, other: Item, lang: str, wide: bool) -> set[str]:
    """What tells an item from another: its placeholders and its title; `wide`: the words of its readings and its page too."""

    def named(i: Item) -> set[str]:
        texts = (i.what, i.where, *i.codes, i.count, *i.times, *i.members, *(i.seen if wide else ()))
        return {m for t in texts for m in marks(folded(t, lang), lang)}

    titles = words_of(item, lang).title - words_of(other, lang).title
    page = words_of(item, lang).all - words_of(other, lang).all if wide and lang == "en" else frozenset()
    return set(with_alike(titles)) - words_of(other, lang).title | (named(item) - named(other)) | set(page)


def _fit(s: Sentence, link: Link, cause: Item, effect: Item, wide: bool) -> float:
    """How well the sides fit: both must name their finding ("this", "it" name the one that is told of first)."""
    lang = s.lang
    one, two = set(marks(link.cause, lang)), set(marks(link.effect, lang))
    a, b = _own(cause, effect, lang, wide) - common(lang), _own(effect, cause, lang, wide) - common(lang)
    own_cause, own_effect = len(one & a), len(two & b)
    refers = _refers(link.cause, lang)
    if own_cause and not own_effect and cause.root and _refers(link.effect, lang) and not two - plain(lang):
        return own_cause - 0.9 * len(one & b)
    if own_effect and (own_cause or (refers and cause.root)):
        crossed = len(one & b) + len(two & a)
        return own_cause + own_effect + 0.5 * refers - 0.9 * crossed
    return 0.0


_POINTS_EN = re.compile(r"\b(?:it|this|that|they|these|same|him|his|its)\b|^\s*$")


def _refers(side: str, lang: str) -> bool:
    """Whether a side only points at what was told before."""
    if lang == "zh":
        return not re.search(r"[A-Za-z\u3400-\u9fff]", side) or any(w in side for w in ("此", "这", "其", "该", "它"))
    return bool(_POINTS_EN.search(side))


def _within(s: Sentence, link: Link, findings: list[Item]) -> bool:
    """A cause within one finding: what its own text says in this order, or the reason for its own action."""
    lang = s.lang
    one = {m for m in marks(link.cause, lang) if m not in plain(lang)}
    two = {m for m in marks(link.effect, lang) if m not in plain(lang)}
    for item in findings:
        w = words_of(item, lang)
        problem = with_alike(w.title) | set(
            marks(" ".join((item.where, *item.codes, *item.seen, *item.background)), lang)
        )
        problem_name = with_alike(w.title)
        told = {m for t in (*item.actions, *item.then, item.standing, *item.commands) for m in marks(t, lang)}
        deed = with_alike(told) - problem
        if two & deed and not (one & deed) and (link.soft or one & problem or _refers(link.cause, lang)):
            return True
        if len(findings) == 1 and not one and _refers(link.cause, lang) and not two & problem_name:
            return True
        if len(findings) == 1 and _in_order(item, one, two, lang):
            return True
        texts = (item.what, *item.seen, *item.background, *item.then)
        for t in texts:
            for known in _links_zh(t, source=True) if lang == "zh" else _links_en(t, source=True):
                a, b = (
                    with_alike(marks(known.cause, lang)) - plain(lang),
                    with_alike(marks(known.effect, lang)) - plain(lang),
                )
                right = min(1, len(one & (a - b)) + _refers(link.cause, lang)) * len(two & (b - a) or two & b)
                if t == item.what and one & (b - a) and two & (a - b) and not (one & (a - b) or two & (b - a)):
                    return False  # the finding's own name says it the other way round
                if right > 0 and right >= len(one & (b - a)) + len(two & (a - b)):
                    return True
    return False


def _in_order(item: Item, cause: set[str], effect: set[str], lang: str) -> bool:
    """Whether a finding's own texts tell of the one and then of the other: a page goes from the problem to what it does."""
    stand = words_of(item, lang).asserted
    place: dict[str, int] = {}
    for i, t in enumerate((item.what, *item.seen, *item.background)):
        for m in marks(folded(t, lang), lang):
            for x in with_alike([m]) if m in stand else ():
                place.setdefault(x, i)
    one, two = ({m for m in side if not m.startswith("{")} for side in (cause - effect, effect - cause))
    one -= stemmed(lex.NUMBERS | WEAK)
    if lang == "en" and not one <= place.keys() | implied(place.keys()):
        return False
    before, after = [place[m] for m in one if m in place], [place[m] for m in two if m in place]
    return bool(before and after) and max(before) < min(after)


def _named(s: Sentence) -> str:
    """Words of blame without a connective: "the root cause is ..." of a root, "only a symptom" of a symptom."""
    if s.lang == "zh":
        said = [w for w in _BLAME_ZH if w in s.text and not any(w in r for r in s.words.han)]
        bare = any(w in s.text for w in _BECAUSE_ZH) and not any(
            w in r for w in _BECAUSE_ZH if w in s.text for r in s.words.han
        )
        if bare:
            return "a cause that no cited finding gives"
    else:
        blamed = [w for w in _BLAME_EN.findall(s.text.lower()) if w]
        stand = s.words.asserted - s.words.denied
        said = [w for w in blamed if not set(marks(w, "en")) & stand]
        if any(set(marks(w, "en")) & s.words.denied for w in said) and not negated_at(s.tokens):
            return "blames what the finding clears"
    findings = [i for i in s.items if i.kind is Kind.FINDING]
    if not said or not findings:
        return ""
    effect = any(
        w.startswith(("symptom", "fallout", "consequence", "victim", "follow", "后果", "症状", "受害")) for w in said
    )
    if any(
        m in s.words.denied - s.words.only_denied or m in s.words.denied for w in said for m in marks(w, s.lang)
    ) and not (negated_at(s.tokens) or s.lang == "zh"):
        return "blames what the finding clears"
    if negated_at(s.tokens) and not effect:
        return "" if any(m in s.words.denied for m in s.marks) else "denies a cause"
    if effect:
        return "" if _of_symptom(s, findings) else "a root is called a symptom"
    subject = [i for i in findings if set(s.marks) & (words_of(i, s.lang).title | {i.where, *i.codes})]
    return "" if subject and all(i.root for i in subject) else "a symptom is called the cause"


def _of_symptom(s: Sentence, findings: list[Item]) -> bool:
    """Whether what is called a symptom is one: the cited findings are, or the one that the sentence names is."""
    if all(not i.root for i in findings):
        return True
    roots, below = [i for i in findings if i.root], [i for i in findings if not i.root]
    said = set(s.marks) - plain(s.lang)

    def named(items: list[Item], others: list[Item]) -> int:
        return max(
            (len(said & (_own(i, o, s.lang, wide=False) - plain(s.lang))) for i in items for o in others), default=0
        )

    return named(below, roots) > 0 and named(roots, below) == 0
