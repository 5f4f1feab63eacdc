"""Extracts: what the findings say passes as it stands, and turned it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.narrate.fence import Guard, Narration, Withheld
from assistant.narrate.material import Kind
from assistant.narrate.wording import sentences
from tests.assistant.narrate.narrate_lab import faithful, made, say

CASES = sorted({(x["case"], x["lang"]) for x in faithful()})
HANGS = made("driver-hangs", "en")
RIGHT = (
    "The GSP firmware of {gpu_1} does not answer ({xid_1} at {f1.first}).",
    "GSP firmware does not answer on {gpu_1}.",
    "NVML calls on this GPU hang or fail, so the process named in the line is a victim and not the culprit.",
    "Next: stop what uses the GPU and reset it: {cmd_1}.",
    "{gpu_1} is not usable until the GPU has been reset.",
)
WRONG = (
    "The firmware of {gpu_1} went silent.",  # other words
    "NVML calls on this GPU hang.",  # an "or" is gone
    "Reset the GPU.",  # a part of the action is gone, or a sentence of the page that says it for another case
    "{gpu_1} can be used until the GPU has been reset.",
    "GSP firmware does answer on {gpu_1}.",
    "The process named in the line is not a victim and the culprit.",
    "Stop what uses the GPU, then use it.",
    "When it recurs, stop what uses the GPU and reset it.",
)


@pytest.mark.parametrize("text", RIGHT, ids=range(len(RIGHT)))
def test_what_the_finding_says_passes(text: str) -> None:
    assert isinstance(say(HANGS, {"text": text, "cites": ["f1"]}), Narration)


@pytest.mark.parametrize("text", [w for w in WRONG if w != "Reset the GPU."], ids=range(len(WRONG) - 1))
def test_what_it_does_not_say_is_withheld(text: str) -> None:
    found = say(HANGS, {"text": text, "cites": ["f1"]})
    assert isinstance(found, Withheld)
    assert found.guard is Guard.EXTRACT


@pytest.mark.parametrize(("case", "lang"), CASES, ids=lambda x: x)
def test_every_measurement_passes_as_it_stands(case: str, lang: str) -> None:
    m = made(case, lang)
    for item in m.items:
        for text in item.seen:
            found = say(m, {"text": text, "cites": [item.id]})
            assert isinstance(found, Narration) or found.guard in (Guard.SIGNS, Guard.CITES), (text, found)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_sentence_without_its_denial_or_with_its_words_turned_is_withheld(data: st.DataObject) -> None:
    case, _ = data.draw(st.sampled_from([c for c in CASES if c[1] == "en"]))
    m = made(case, "en")
    findings = [i for i in m.items if i.kind is Kind.FINDING and i.certainty == "confirmed" and i.background]
    item = data.draw(st.sampled_from(findings)) if findings else None
    if item is None:
        return
    text = data.draw(st.sampled_from([x for b in item.background for x in sentences(b, "en")])).rstrip(".")
    words = text.split()
    whole = say(m, {"text": text + ".", "cites": [item.id]})
    if isinstance(whole, Withheld):
        return
    for denial in {"not", "no", "never", "without", "only", "until"} & set(words):
        less = " ".join(w for w in words if w != denial)
        assert isinstance(say(m, {"text": less + ".", "cites": [item.id]}), Withheld), less
    half = len(words) // 2
    if half > 2 and not set(text) & set(",;:("):  # two whole clauses may change places
        turned = " ".join([*words[half:], *words[:half]])
        assert isinstance(say(m, {"text": turned + ".", "cites": [item.id]}), Withheld), turned


def test_a_cause_stands_only_where_the_findings_say_so() -> None:
    one, two = (next(i for i in HANGS.items if i.id == n) for n in ("f1", "f2"))
    assert two.id in HANGS.reaches(one.id)
    a, b = one.what, two.what[:1].lower() + two.what[1:]
    both = {"cites": [one.id, two.id]}
    for text in (f"{a}, so {b}.", f"{two.what} because {a}.", f"Because {a}, {b}.", f"{a}; this explains why {b}."):
        assert isinstance(say(HANGS, {"text": text, **both}), Narration), text
    for text in (
        f"{two.what}, so {a}.",
        f"{a} because {b}.",
        f"Because {b}, {a}.",
        f"{two.what}; this explains why {a}.",
    ):
        assert isinstance(say(HANGS, {"text": text, **both}), Withheld), text
