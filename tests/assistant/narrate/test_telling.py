"""Whole statements, each where it means what it means there: as they stand they pass, and changed, cut or moved they do not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.narrate.fence import Guard, Narration, Withheld
from assistant.narrate.material import Item, Kind, Material
from assistant.narrate.wording import sentences
from tests.assistant.narrate.narrate_lab import faithful, made, say
from tests.cases import each

CASES = sorted({(x["case"], x["lang"]) for x in faithful()})
NAME = "GSP firmware does not answer on {gpu_1}."
RIGHT = (
    ("GSP firmware does not answer on {gpu_1} ({xid_1} at {f1.first}).",),
    ("{gpu_1}: GSP firmware does not answer.", "{gpu_1} is not usable until the GPU has been reset."),
    (NAME, "Next: stop what uses the GPU and reset it: {cmd_1}."),
    ("{gpu_1} is not usable until the GPU has been reset.", "Stop what uses the GPU and reset it."),
    (NAME, "The driver runs part of itself on the GPU's own processor (GSP) and waited in vain for an answer."),
    (
        NAME,
        "The driver runs part of itself on the GPU's own processor (GSP) and waited in vain for an answer.",
        "NVML calls on this GPU hang or fail, so the process named in the line, often nvidia-smi or a monitor, is a victim and not the culprit.",
    ),
)
WRONG = (
    ("The firmware of {gpu_1} went silent.",),  # other words
    ("GSP firmware does answer on {gpu_1}.",),
    (NAME, "Reset the GPU."),  # a part of the action, and a sentence of the page out of its order
    (NAME, "Next: stop what uses the GPU, and reset it."),  # a comma more
    ("{gpu_1} is usable until the GPU has been reset.",),
    ("The driver runs part of itself on the GPU's own processor (GSP) and waited in vain for an answer.",),  # of what?
    (NAME, "NVML calls on this GPU hang or fail, so the process named in the line, often nvidia-smi or a monitor, is a victim and not the culprit."),
    (NAME, "Stop what uses the GPU and reset it.", "The driver runs part of itself on the GPU's own processor (GSP) and waited in vain for an answer."),
    ("GSP firmware does not answer on {gpu_1}, so stop what uses the GPU and reset it.",),
)  # fmt: skip


def hangs() -> Material:
    return made("driver-hangs", "en")


def bus() -> Material:
    return made("off-the-bus", "en")


def three() -> Material:
    return made("three-gpus-three-faults", "en")


def told(m: Material, *texts: str, cites: tuple[str, ...] = ("f1",)) -> Narration | Withheld:
    return say(m, *({"text": t, "cites": list(cites)} for t in texts))


@each("texts", RIGHT, ids=range(len(RIGHT)))
def test_what_the_finding_says_passes(texts: tuple[str, ...]) -> None:
    assert isinstance(told(hangs(), *texts), Narration)


@each("texts", WRONG, ids=range(len(WRONG)))
def test_what_it_does_not_say_or_not_there_is_withheld(texts: tuple[str, ...]) -> None:
    found = told(hangs(), *texts)
    assert isinstance(found, Withheld)
    assert found.guard is Guard.STATEMENT


# --- all that may be told, over all cases -------------------------------------------------


def named(item: Item, lang: str) -> str:
    """A name in the form that fits every name."""
    perhaps = {"probable": ("probably, ", "很可能"), "possible": ("possibly, ", "可能")}.get(item.certainty, ("", ""))
    where = item.where and f"{item.where}{'：' if lang == 'zh' else ': '}"
    return f"{where}{perhaps[lang == 'zh']}{item.what}{'。' if lang == 'zh' else '.'}"


def block(item: Item, lang: str) -> list[dict[str, Any]]:
    """Everything of a finding, in its order."""
    texts = [named(item, lang), *(f"{x}{'。' if lang == 'zh' else '.'}" for x in item.seen), *item.background]
    if item.standing and item.where:
        use = item.standing
        texts.append(f"{item.where}{use}。" if lang == "zh" else f"{item.where}: {use}.")
    texts += [x for x in (*item.actions, *item.then) for x in sentences(x, lang)]
    return [{"text": t, "cites": [item.id]} for t in texts]


def findings(m: Material) -> list[Item]:
    return [i for i in m.items if i.kind is Kind.FINDING]


@each(("case", "lang"), CASES, ids=lambda x: x)
def test_all_of_a_finding_passes_in_its_order(case: str, lang: str) -> None:
    m = made(case, lang)
    for item in findings(m):
        found = say(m, *block(item, lang)[:12])
        assert isinstance(found, Narration) or found.guard is Guard.SIGNS, (block(item, lang), found)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_one_word_less_more_or_moved_is_withheld(data: st.DataObject) -> None:
    case, lang = data.draw(st.sampled_from(CASES))
    m = made(case, lang)
    if not findings(m):
        return
    item = data.draw(st.sampled_from(findings(m)))
    lines = block(item, lang)[:12]
    if isinstance(say(m, *lines), Withheld):
        return
    # The words around a name are free in several ways: they are looked at above.
    n = data.draw(st.integers(1, max(1, len(lines) - 1)))
    if n >= len(lines):
        return
    tokens = re.findall(r"\{[^{}]*\}|[A-Za-z'-]+|[^\sA-Za-z{}]", lines[n]["text"])
    tokens = tokens[:-1]  # the stop
    k = data.draw(st.integers(0, len(tokens) - 1))
    changed = list(tokens)
    how = data.draw(st.sampled_from(["less", "more", "moved"]))
    if how == "less":
        if tokens[k] == "is":
            return  # a headline without its verb says the same
        changed.pop(k)
    elif how == "more":
        changed.insert(
            k,
            data.draw(
                st.sampled_from(["not", "no", "all", "only", ","] if lang == "en" else ["不", "未", "仅", "都", "，"])
            ),
        )
    elif k + 1 < len(changed) and changed[k].lower() != changed[k + 1].lower():
        changed[k], changed[k + 1] = changed[k + 1], changed[k]
    else:
        return
    text = (" ".join(changed) if lang == "en" else "".join(changed)) + ("." if lang == "en" else "。")
    told_of = [*lines[:n], {**lines[n], "text": text}, *lines[n + 1 :]]
    assert isinstance(say(m, *told_of), Withheld), text


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_page_of_one_finding_does_not_stand_behind_another(data: st.DataObject) -> None:
    case, lang = data.draw(st.sampled_from(CASES))
    m = made(case, lang)
    roots = [i for i in findings(m) if i.background]
    if not roots or len(findings(m)) < 2:
        return
    item = data.draw(st.sampled_from(roots))
    other = data.draw(st.sampled_from([i for i in findings(m) if i is not item]))
    page = {"text": item.background[0], "cites": [item.id]}
    name, strange = ({"text": named(i, lang), "cites": [i.id]} for i in (item, other))
    if isinstance(say(m, name, page), Withheld):
        return
    assert isinstance(say(m, name, strange, page), Withheld)
    assert isinstance(say(m, strange, page), Withheld)
    assert isinstance(say(m, page), Withheld)
    assert isinstance(say(m, strange, name, page), Narration)


# --- what explains what -------------------------------------------------------------------


def test_a_cause_stands_only_where_the_findings_say_so_and_in_one_form() -> None:
    one, two = (next(i for i in hangs().items if i.id == n) for n in ("f1", "f2"))
    assert two.id in one.explains
    a, b = f"{one.what} on {one.where}", two.what[:1].lower() + two.what[1:]
    both = ("f1", "f2")
    for text in (f"{a}; this explains {b}.", f"{a}, which explains {b}."):
        assert isinstance(told(hangs(), text, cites=both), Narration), text
    assert isinstance(
        say(hangs(), {"text": NAME, "cites": ["f1"]}, {"text": f"This explains {b}.", "cites": ["f1", "f2"]}), Narration
    )
    for text in (f"{two.what} on {two.where}; this explains {a}.", f"{a}, so {b}.", f"{b} because {a}.", f"{a} caused {b}.",
                 f"{a}; this explains {b}, {b}."):  # fmt: skip
        assert isinstance(told(hangs(), text, cites=both), Withheld), text
    assert isinstance(told(hangs(), f"This explains {b}.", cites=both), Withheld)  # what does?


def test_what_is_on_another_gpu_is_told_with_it_and_ends_the_talk_of_the_first() -> None:
    """f14 of this incident is of another GPU: without its name it would seem to be of the one that was lost."""
    torn = next(i for i in bus().items if i.id == "f14")
    assert torn.where != "{gpu_1}"
    lost = "GPU has fallen off the bus on {gpu_1}; this explains "
    both = ["f1", "f14"]
    bare, placed = (f"{lost}{torn.what[:1].lower()}{torn.what[1:]}{x}." for x in ("", f", on {torn.where}"))
    page = {"text": bus().items[0].background[0], "cites": ["f1"]}
    assert isinstance(say(bus(), {"text": bare, "cites": both}), Withheld)
    assert isinstance(say(bus(), {"text": placed, "cites": both}), Narration)
    assert isinstance(say(bus(), {"text": placed, "cites": both}, page), Withheld)


def test_what_is_to_be_done_belongs_to_a_name() -> None:
    """Three GPUs with three faults: an action alone could be of any of them."""
    none = {"text": "No action is needed now.", "cites": ["f3"]}
    name = {"text": "Corrected memory errors come too fast on {gpu_3}.", "cites": ["f3"]}
    other = {"text": "{gpu_1} has probably fallen off the bus.", "cites": ["f1"]}
    assert isinstance(say(three(), name, none), Narration)
    assert isinstance(say(three(), other, name, none), Narration)
    for lines in ((none,), (other, none), (name, other, none)):
        assert isinstance(say(three(), *lines), Withheld)


def test_a_doubt_is_told_and_only_where_there_is_one() -> None:
    sure = {"text": "{gpu_1} has fallen off the bus.", "cites": ["f1"]}
    for text, good in (
        ("{gpu_1} has probably fallen off the bus.", True), ("Probably, GPU has fallen off the bus on {gpu_1}.", True),
        ("{gpu_1} has possibly fallen off the bus.", False), ("{gpu_1} has fallen off the bus, probably.", False),
        ("GPU has fallen off the probably bus on {gpu_1}.", False),
    ):  # fmt: skip
        assert isinstance(say(three(), {**sure, "text": text}), Narration) is good, text
        assert isinstance(say(bus(), {**sure, "text": text}), Withheld)
    assert isinstance(say(three(), sure), Withheld)
    assert isinstance(say(bus(), sure), Narration)


def test_an_action_is_told_to_its_end() -> None:
    case = next(
        (m, i) for c, lang in CASES if lang == "en" for m in (made(c, lang),) for i in findings(m)
        if i.actions and len(sentences(" ".join(i.actions), "en")) > 1
    )  # fmt: skip
    m, item = case
    parts = sentences(" ".join(item.actions), "en")
    name = {"text": named(item, "en"), "cites": [item.id]}
    assert isinstance(say(m, name, *({"text": p, "cites": [item.id]} for p in parts)), Narration)
    assert isinstance(say(m, name, *({"text": p, "cites": [item.id]} for p in parts[:-1])), Withheld)
    assert isinstance(say(m, name, *({"text": p, "cites": [item.id]} for p in parts[::-1])), Withheld)
