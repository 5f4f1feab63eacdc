"""Whether each clause of an English sentence rests on one statement of a cited finding.

Words alone prove little: "the reboot made the GPU fall off the bus" has only words of its finding. So every word of a clause that is
not glue (`assistant.narrate.freewords`) must stand in one and the same statement, or be of the same meaning as a word there; what is told to be
done must be told there, of the same thing; what is only a condition must stay one; and who does what to whom keeps its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from assistant.narrate import freewords as fw
from assistant.narrate import support_zh
from assistant.narrate.clauses import CONDITION, REMEDY, content, deed_verbs, given, kinds, stems_of, told_to
from assistant.narrate.material import Item, Kind
from assistant.narrate.phrases import APART, all_else, blamed, idiom, sequence
from assistant.narrate.placeholders import PLACEHOLDER
from assistant.narrate.roles import acts, compared_otherwise, elsewhere, turned
from assistant.narrate.sentence import Sentence
from assistant.narrate.statements import Mode, Statement, hedged, statements
from assistant.narrate.vocabulary import denied_in, imperative, implied, negated_at, stemmed, with_alike
from assistant.narrate.wording import stem, tokens

_SPLIT = re.compile(
    r"[;:()]|, (?:and |but |so |which |while |whereas )?|\b(?:because of|because|due to|owing to|whereas|although|though|but)\b"
    r"|\b(?:is|are|was|were|been) (?:\w+ )?(?:explained|caused|triggered|produced) by\b|\bfollow(?:s|ed)? from\b|\b(?:led|leads) to\b|\bexplains?\b"
    r"|\bresult(?:s|ed)? (?:in|from)\b|\b(?:only |merely |just )?(?:an? |the )?(?:direct |mere )?(?:result|consequence|symptom|effect|fallout|shadow) of\b"
    r"|\b(?=(?:until|once|after|before|when|if|unless)\b)|(?<=[a-z}]) so (?!far\b)(?=[a-z])"
)
_FINER = re.compile(r"\b(?:and|which|that|while|who|yet|with|as)\b")


def support(s: Sentence) -> str:
    """Which clause rests on nothing; empty when each rests on a statement."""
    if s.lang == "zh":
        return support_zh.support(s)
    parts = [p for p in _SPLIT.split(s.text) if p and p.strip(" .")]
    verbs = frozenset(
        v for i in s.items for st in statements(i, "en") if st.mode is Mode.DEED for v in deed_verbs(st.text)
    )
    told = [told_to(p, verbs) for p in parts]
    told = [
        d or any(told[:k]) or bool(REMEDY.search(s.text)) for k, d in enumerate(told)
    ]  # "have power, cooling and seating inspected"
    advises = any(told)
    if wrong := blamed(s):
        return wrong
    if all_else(s):
        return ""
    if wrong := idiom(s) or sequence(s):
        return wrong
    if any(i.id in s.material.reaches(j.id) for i in s.items for j in s.items):
        parts = [APART.sub("", p) for p in parts]
    for part, deed in zip(parts, told, strict=True):
        if not _rests(s, part, deed, advises):
            return f"no statement says {_missing(s, part, deed, advises)} of {part.strip()[:60]!a}"
    return ""


def _missing(s: Sentence, part: str, deed: bool, advises: bool) -> str:
    """The words that the statement which fits best does not say; none when it is their order or sense."""
    lacks = [
        sorted(content(part) - given(st.text) - _things(s.material.by_id[st.item], st))
        for st in _options(s, part, deed, advises)
    ]
    return " ".join(min((len(x), x) for x in lacks)[1] if lacks else sorted(content(part)))


def _rests(s: Sentence, part: str, deed: bool, advises: bool, deep: int = 2) -> bool:
    said = content(part)
    if not said:
        return True
    if said <= stemmed(fw.WEAK) and not (advises or "{f" in part):
        return False
    if any(_covers(s, st, part) for st in _options(s, part, deed, advises)):
        return True
    return deep > 0 and any(
        _rests(s, part[: m.start()], deed, advises, deep - 1)
        and _rests(s, _carried(part, m) + part[m.end() :], deed, advises, deep - 1)
        for m in _FINER.finditer(part)
        if content(part[: m.start()]) and content(part[m.end() :])
    )


def _carried(part: str, m: re.Match[str]) -> str:
    """What "that", "which" and "who" stand for: the word ahead of them, when it is a thing."""
    if m[0] not in ("that", "which", "who"):
        return ""
    last = next((t for t in reversed(tokens(part[: m.start()])) if t[0].isalpha()), "")
    return f"{last} " if content(last) else ""


def _options(s: Sentence, part: str, deed: bool, advises: bool) -> Iterable[Statement]:
    condition = bool(CONDITION.match(part))
    stated = [x for i in s.items for x in statements(i, "en")]
    uses = bool(_USES.search(s.text.lower()))
    orders = deed and imperative(part.strip())
    for st in stated:
        if (
            (st.mode is Mode.FACT and not orders and (not condition or not (uses or advises)))
            or (st.mode is Mode.OPEN and hedged(frozenset(s.low), s.text, "en"))
            or (st.mode is Mode.DEED and (deed or (condition and (uses or advises))))
            or (
                st.mode is Mode.LATER
                and (
                    (deed and (not orders or _CLEARS.search(part)))
                    or (condition and (uses or advises or _HANGS.search(s.text)))
                )
            )
            or (st.mode is Mode.STATE and uses and not (orders and not negated_at(tokens(part))))
        ):
            yield st


_CLEARS = re.compile(r"\b(?:drain|reset|reboot|restart)\b", re.IGNORECASE)
_USES = re.compile(r"\b(?:use|used|usable|using|service|put|place|continue|remain|ready)\b")
_HANGS = re.compile(r"\b(?:hang|fail|wait|block|stay)s?\b.*\buntil\b")


def _covers(s: Sentence, st: Statement, part: str) -> bool:
    item = s.material.by_id[st.item]
    missing = content(part) - given(st.text) - _things(item, st)
    for o in (
        st,
        *(
            o
            for o in _beside(item, st)
            if " than " not in part or any(f"{{{n}}}" in o.text for n in PLACEHOLDER.findall(part) if "." in n)
        ),
    ):
        if any(x.mode is Mode.DEED and _unconditional(s, x) for x in (st, o)):
            continue
        if missing <= given(o.text) and _sound(s, part, item, st, () if o is st else (o,)):
            return True
    return False


_IFS = frozenset(
    ["if", "when", "whenever", "should", "again", "recurs", "recur", "repeats", "once", "after", "before", "until"]
)


def _unconditional(s: Sentence, st: Statement) -> bool:
    """Whether a deed for some case only is told as if it were for all."""
    first = st.text.partition(" ")[0].lower()
    low = set(st.text.lower().split())
    if low & {"next", "window", "idle"} and not set(s.low) & {"next", "window", "idle", "later", "until"}:
        return True
    if first not in ("if", "when") and "if" in low:
        return not set(s.low) & {"if", "when", "should", "whenever"}
    return first in ("if", "when") and not set(s.low) & _IFS


def _sound(s: Sentence, part: str, item: Item, st: Statement, more: tuple[Statement, ...]) -> bool:
    if (
        st.mode is Mode.STATE
        and (bool(negated_at(tokens(st.text))) != bool(negated_at(tokens(part))))
        and not (negated_at(tokens(st.text)) and set(s.low) & {"once", "after", "before", "out", "when"})
    ):
        return False
    if st.mode is Mode.STATE:  # what it says of use is for the guard of the verdict
        return not elsewhere(
            part, [o.text for o in statements(item, "en") if o.mode in (Mode.DEED, Mode.LATER)], strict=False
        )
    texts = [st.text, *(o.text for o in more)]
    if (item.kind is Kind.FINDING and _signs_differ(part, texts, item)) or _values_elsewhere(part, item, texts):
        return False
    if (
        (m := CONDITION.match(part))
        and st.mode in (Mode.DEED, Mode.LATER)
        and not _same_condition(m[0].strip().lower(), s, texts, st)
    ):
        return False
    if st.mode in (Mode.DEED, Mode.LATER):
        texts += [o.text for o in statements(item, "en") if o.mode in (Mode.DEED, Mode.LATER)]
        mine = {n for n in PLACEHOLDER.findall(part) if "." in n}
        return all(any(f"{{{n}}}" in x for x in texts) for n in mine) and not elsewhere(part, texts, strict=True)
    if any("shared memory" in x.lower() for x in texts) and "memory" in part and "shared" not in part:
        return False
    if any(turned(part, t) for t in texts) or elsewhere(part, texts, strict=False):
        return False
    if any(
        a.verb in _ALONE and a.object - {"it"} and not any(b.object for x in texts for b in acts(x) if b.verb == a.verb)
        for a in acts(part)
    ):
        return False
    if any(a.subject and a.object - {"it"} and a.verb in _QUALITIES and not _acted(a.verb, texts) for a in acts(part)):
        return False  # a quality of the text made into a deed: "the process heats the GPU"
    if any(compared_otherwise(part, x) for x in texts if " than " in x or x == st.text):
        return False
    whole = content(st.text) - stemmed(fw.ENTITIES)
    said = with_alike(content(part)) | implied(content(part))
    return st.name or len(whole) > 2 or not whole & _LACKING or whole <= said


@lru_cache(maxsize=2048)
def _beside(item: Item, st: Statement) -> tuple[Statement, ...]:
    """Statements that tell of the very same thing: two words in common, or the sentence that "its" points back to."""
    every = statements(item, "en")
    own = with_alike(content(st.text))
    later = {Mode.STATE: (Mode.LATER, Mode.DEED), Mode.LATER: (Mode.STATE, Mode.DEED)}.get(st.mode, (st.mode,))
    k = every.index(st)
    return tuple(
        o for n, o in enumerate(every)
        if n != k and o.mode in later
        and (len(content(o.text) & own) >= 2 or ("{" in o.text + st.text and {a.verb for a in acts(o.text)} & {a.verb for a in acts(st.text)}) or st.mode in (Mode.DEED, Mode.STATE, Mode.LATER) or (n == k - 1 and re.match(r"(?:all )?(?:its|their)\b", st.text, re.IGNORECASE)))
    )  # fmt: skip


def _things(item: Item, st: Statement) -> frozenset[str]:
    """The thing that the finding is about may be named in any of its statements."""
    extra: frozenset[str] = frozenset()
    if st.mode is Mode.STATE:
        extra = _IN_USE
    elif item.kind is not Kind.FINDING:
        extra = _OUTSIDE
    elif st.mode in (Mode.DEED, Mode.LATER):
        extra = _TO_DO | ({"only"} if any("needs nothing" in x for x in item.actions) else frozenset())
    elif st.mode is Mode.OPEN:
        extra = stems_of("usual usually often typical typically common commonly")
    return kinds(item) | extra


def _acted(verb: str, texts: Sequence[str]) -> bool:
    return any(b.verb in with_alike([verb]) for x in texts for b in acts(x))


def _same_condition(word: str, s: Sentence, texts: Sequence[str], st: Statement) -> bool:
    low = {w for x in texts for w in x.lower().split()}
    if word == "before":
        return "before" in low or bool(_USES.search(s.text.lower()))
    return (
        word not in ("after", "once")
        or st.mode is Mode.LATER
        or bool(low & {"after", "once", "when", "if", "then"} or _USES.search(s.text.lower()))
    )


def _signs_differ(part: str, texts: Sequence[str], item: Item) -> bool:
    """Whether only one of the two denies. "Stopped answering" and "no longer answers" are the same."""
    lacks = {stem(t) for t in tokens(part) if t[0].isalpha()} & _NEGATIVE
    denied = {m for x in texts for m in denied_in(x, "en") - (content(x) - denied_in(x, "en"))}
    if negated_at(tokens(part)):
        if re.search(r"\b(?:need|require|necessary)", part) and not any(
            re.search(r"\b(?:need|nothing|action)", x.lower()) for x in texts
        ):
            return True
        given = {stem(t) for x in (*texts, item.what) for t in tokens(x) if t[0].isalpha()}
        return not (any(negated_at(tokens(x)) or x.endswith(": no") for x in texts) or given & _NEGATIVE)
    return (
        bool(denied & content(part))
        and not lacks
        and not re.search(r"\bun[a-z]+ed\b|\buntil\b|\bonce\b|\bafter\b|\bbefore\b|\bwhy\b", part.lower())
    )


def _values_elsewhere(part: str, item: Item, texts: Sequence[str]) -> bool:
    """Whether a reading stands in a clause that rests on another statement than that of the reading."""
    mine = {n for n in PLACEHOLDER.findall(part) if "." in n and any(f"{{{n}}}" in line for line in item.seen)}
    return bool(mine) and not any(f"{{{n}}}" in x for n in mine for x in texts)


_NEGATIVE = stems_of(
    "stop fail lose cease without silent unresponsive unreachable vain refuse lack missing hang hung fall off down dead idle inactive uncorrected uncorrectable poor wrong die gone disappear drop fell left ended out too only hot pending illegal"
)
_ALONE = stems_of("hang fall wait stall freeze crash idle")  # nobody does it to another
_QUALITIES = stems_of("brake heat overheat slow cool damage break crash stop fail")
_LACKING = stems_of("fail lose stop miss missing poor bad wrong refuse lack")
_IN_USE = stems_of(
    "node machine server gpu hardware system use usable service put place new again out work continue remain meanwhile back ready"
)
_OUTSIDE = stems_of("rule exclude speak against answer read unread see decide whether source check unknown could one")
_TO_DO = stems_of("first enough next")
