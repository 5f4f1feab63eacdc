"""Words of a text: sentences, stems, Han runs. What both the vocabulary and the fence count in."""

from __future__ import annotations

import re

from assistant.narrate import lexicon as lex

_EN_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)\s+(?=[A-Z{\"'(])")
_ZH_END = re.compile(r"(?<=[。！？；])\s*")


def sentences(text: str, lang: str) -> tuple[str, ...]:
    """The sentences of a text of ours."""
    parts = (_ZH_END if lang == "zh" else _EN_END).split(" ".join(text.split()))
    return tuple(p.strip() for p in parts if p.strip())


TOKEN = re.compile(r"\{[^{}]*\}|[A-Za-z]+(?:['’][A-Za-z]+)?|[\u3400-\u9fff]+|\S")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_IRREGULAR = {
    form: base
    for base, forms in {
        "fall": "fell fallen", "lose": "lost losing", "run": "ran", "write": "wrote written", "find": "found", "break": "broke broken",
        "send": "sent", "keep": "kept", "hold": "held", "begin": "began begun", "take": "took taken", "give": "gave given",
        "see": "saw seen", "go": "went", "come": "came", "become": "became", "get": "got", "hang": "hung", "leave": "left", "stick": "stuck",
        "know": "knew known", "stand": "stood", "bring": "brought", "tell": "told", "say": "said", "make": "made", "mean": "meant",
        "grow": "grew grown", "drive": "drove driven", "show": "shown", "wear": "worn", "tear": "tore torn", "feed": "fed",
        "spend": "spent", "lead": "led", "pay": "paid", "build": "built", "choose": "chose chosen", "draw": "drew drawn",
        "sleep": "slept", "rise": "rose risen", "freeze": "froze frozen", "understand": "understood", "die": "died dying dies",
        "low": "lower lowest", "slow": "slower slowest", "hot": "hotter hottest", "poor": "poorer", "bad": "worse worst",
        "little": "less least", "many": "more most", "few": "fewer", "do": "does did done", "be": "is are was were been being",
        "have": "has had having", "stop": "stopped stopping", "use": "used using uses", "timeout": "timeouts",
        "bus": "buses", "status": "statuses", "process": "processes", "access": "accesses accessed accessing", "address": "addresses",
        "gpu": "gpus", "analysis": "analyses", "datum": "data", "sit": "sat sitting", "set": "setting settings", "cut": "cutting",
    }.items()
    for form in forms.split()
}  # fmt: skip


def stem(word: str) -> str:
    """A word without its ending; the same for all forms of a word, and perhaps for a few that only look alike."""
    w = word.lower().replace("’", "'")
    w = w.removesuffix("'s").rstrip("'")
    if w in _IRREGULAR:
        w = _IRREGULAR[w]
        return w[:-1] if w.endswith("e") and len(w) > 3 else w
    for ending, back in (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if w.endswith(ending) and len(w) > len(ending) + 2:
            return w.removesuffix(ending) + back
    if w.endswith("s") and not w.endswith(("ss", "us", "is")) and len(w) > 3:
        w = w[:-1]
    for ending in ("ing", "ed", "ly"):
        if w.endswith(ending) and len(w) > len(ending) + 2 and re.search("[aeiouy]", w[: -len(ending)]):
            w = w.removesuffix(ending)
            if len(w) > 3 and w[-1] == w[-2] and w[-1] not in "lsz":
                w = w[:-1]
            break
    return w[:-1] if w.endswith("e") and len(w) > 3 else w


def folded(text: str, lang: str) -> str:
    """`text` with one word for each meaning, to be compared."""
    for a, b in lex.ZH_SAME if lang == "zh" else ():
        text = text.replace(a, b)
    return text


def tokens(text: str) -> list[str]:
    """Placeholders, words, runs of Han and single signs, as they stand."""
    return TOKEN.findall(text)


def stems(text: str) -> list[str]:
    """The stems of the Latin words of a text."""
    return [stem(t) for t in tokens(text) if t[0].isascii() and t[0].isalpha()]


def runs(text: str) -> list[str]:
    """The runs of Han of a text."""
    return _HAN.findall(text)


def pairs(run: str) -> list[str]:
    """Neighbouring characters of a run: what Chinese is compared by."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def marks(text: str, lang: str) -> list[str]:
    """What a text is compared by, in order: placeholders, stems, and pairs of Han."""
    out: list[str] = []
    for t in tokens(text):
        if t.startswith("{"):
            out.append(t)
        elif t[0].isascii() and t[0].isalpha():
            out.append(stem(t))
        elif lang == "zh" and _HAN.fullmatch(t):
            out += pairs(t)
    return out
