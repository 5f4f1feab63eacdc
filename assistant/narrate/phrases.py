"""Phrases that make or deny a claim whatever the rest of an English sentence says, each judged as a whole."""

from __future__ import annotations

import re

from assistant.narrate import freewords as fw
from assistant.narrate import lexicon as lex
from assistant.narrate.clauses import content, given, kinds
from assistant.narrate.material import Kind
from assistant.narrate.sentence import Sentence
from assistant.narrate.statements import statements
from assistant.narrate.vocabulary import negated_at, stemmed, with_alike
from assistant.narrate.wording import stem, tokens

_TROUBLE = r"(?:problem|issue|trouble|fault|failure|error|culprit|cause|matter)"
_IS_IT = re.compile(
    rf"([^,;:]*)\b(?:is|are|was|were|remains?) (?:the|a|an|at) (?:root |main |real |only |actual )?{_TROUBLE}s?\b(?! of| for)",
    re.IGNORECASE,
)
_IT_IS = re.compile(
    rf"\b{_TROUBLE}s?(?: itself)? (?:is|are|was|were|lies?|lay|sits?|comes?|came|began|starts?|started|remains?)\b(?: in| with| on| at| from| inside| within)*([^,;:]*)",
    re.IGNORECASE,
)

_VICTIM = re.compile(
    r"([^,;:]*)\b(?:is|are|was|were) (?:the |a |an )?(?:mere |only )?(?:victim|symptom)s?\b", re.IGNORECASE
)


def blamed(s: Sentence) -> str:
    """ "X is the problem": X is what a cited finding is called, or where it is."""
    known = frozenset().union(*(with_alike(given(i.what)) | kinds(i) for i in s.items))
    for m in (*_IS_IT.finditer(s.text), *_IT_IS.finditer(s.text)):
        if not negated_at(tokens(m[0])) and (strange := content(m[1]) - known - stemmed(fw.WEAK)):
            return f"not what the finding is called: {min(strange)}"
    for m in _VICTIM.finditer(s.text):
        told = [given(st.text) for i in s.items for st in statements(i, "en") if "victim" in st.text]
        told += [given(i.what) | kinds(i) for i in s.items if not i.root]
        if (named := content(m[1])) and not any(named <= g for g in told):
            return f"not told as a victim: {min(named)}"
    return ""


APART = re.compile(
    r"\b(?:and )?not (?:a|an) (?:separate|independent|own|second|new) (?:fault|problem|failure|issue|error|cause|finding)s?\b"
)
_OFTEN = re.compile(
    r"\bonce[.,]?$|\bfrom time to time\b|\bat times\b|\btime and again\b|\bnow and then\b|\bonce in a while\b|\bin any case\b|\bthan (?:usual|before|ever|normal|expected)\b|\bno matter\b|\bso far as\b",
    re.IGNORECASE,
)
_CAUSAL = re.compile(
    r"\b(?:is|are|was|were) (?:the|a|an) (?:\w+ )?(?:cause|culprit|reason|source|origin)s?\b", re.IGNORECASE
)


def idiom(s: Sentence) -> str:
    """How often, than what, and what is the cause, where no statement says so."""
    if found := _OFTEN.search(s.text):
        return f"no statement says {found[0]}"
    if _CAUSAL.search(s.text) and all(not i.root for i in s.items) and len(s.items) == 1 and not negated_at(s.tokens):
        return "a symptom is called the cause"
    return ""


def sequence(s: Sentence) -> str:
    """Deeds in another order than that in which they are to be done."""
    if "then" not in s.low:
        return ""
    told = [stem(t) for i in s.items for x in (*i.actions, *i.then) for t in tokens(x) if t[0].isalpha()]
    cut = s.low.index("then")
    ahead, behind = (
        {stem(t) for t in half if t[0].isalpha()} & stemmed(lex.DEEDS | {"inspect", "look"})
        for half in (s.low[:cut], s.low[cut:])
    )
    wrong = [w for w in ahead for v in behind if w != v and w in told and v in told and told.index(w) > told.index(v)]
    return f"the order of deeds is another: {wrong[0]}" if wrong else ""


_ELSE = re.compile(
    r"(?:everything|all) else(?: in the (?:report|log))? (?:is|was|are|follows|came) (?:an? |the )?(?:consequences?|symptoms?|effects?|results?|fallout)? ?"
    r"(?:of|from) (?:it|this|that|(?:that|this) (?:one )?(?:event|fault|failure|loss)|\{[a-z]+_\d+\})\.?",
    re.IGNORECASE,
)


def all_else(s: Sentence) -> bool:
    """ "Everything else is a consequence of it": so it is, where a cited root explains all other findings."""
    every = {i.id for i in s.material.items if i.kind is Kind.FINDING}
    return bool(_ELSE.fullmatch(s.text)) and any(every <= s.material.reaches(i.id) | {i.id} for i in s.items if i.root)
