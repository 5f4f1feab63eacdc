"""What a finding's title ends with: the function, rank or operator to blame, once it is known."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from knowledge.language import Text
from knowledge.observation import Observation, Status
from rules import loader
from rules.engine import run
from rules.lint import lint
from tests.cases import each
from tests.rules.files import changed, write
from tests.rules.lab import base, rule, seen, silent

HOT = {"fact": "level", "op": "at_least", "value": 5}
NAMES = Text("in {word}", "位于 {word}")


def title(*told: Observation, names: Text = NAMES) -> Text:
    """The title of a finding whose rule names something."""
    (found,) = run([rule("slow", HOT, names=names)], base([seen("level", 9), *told])).findings
    return found.title


def test_a_title_ends_with_what_is_to_blame() -> None:
    assert title(seen("word", "decode (data.py:12)")) == Text(
        "slow: in decode (data.py:12)", "slow：位于 decode (data.py:12)"
    )


@each("told", [[], [silent("word")], [silent("word", Status.DENIED)], [seen("word", "")], [seen("word", "\x00\n")]])
def test_what_is_not_known_is_not_named(told: list[Observation]) -> None:
    assert title(*told) == Text("slow")


def test_one_fact_that_is_missing_leaves_all_out() -> None:
    both = Text("{word} at {watts} W", "{word}，{watts} W")
    assert title(seen("word", "f"), seen("watts", 3.14159), names=both).en == "slow: f at 3.14 W"
    assert title(seen("word", "f"), names=both).en == "slow"


def test_sets_and_numbers_are_said_plainly() -> None:
    assert title(seen("flags", ("hot", "cold")), names=Text("{flags}", "{flags}")).en == "slow: hot, cold"
    assert title(seen("errors", 3), names=Text("{errors} errors", "{errors} 次")).zh == "slow：3 次"


def test_what_is_named_stands_in_the_evidence() -> None:
    (found,) = run([rule("slow", HOT, names=NAMES)], base([seen("level", 9), seen("word", "f")])).findings
    assert [o.fact for o in found.because] == ["level", "word"]


@given(st.text(max_size=400))
def test_a_program_cannot_spoil_the_title(word: str) -> None:
    """Names come out of the target: whatever they hold, a title is one clean line of bounded length."""
    said = title(seen("word", word)).en
    assert len(said) < 200
    assert "\n" not in said
    assert "\x1b" not in said


def test_braces_in_a_value_are_left_alone() -> None:
    assert title(seen("word", "{level} {code}")).en == "slow: in {level} {code}"


# --- rule files ---------------------------------------------------------------------------

NAMED = "names: {en: 'in {stack.hot.function}', zh: '位于 {stack.hot.function}'}\naction:"


def test_names_are_read_from_the_file(tmp_path: Path) -> None:
    document, read = loader.read_file(write(tmp_path, changed(("action:", NAMED))))
    assert document.faults == []
    assert read is not None
    assert read.names == Text("in {stack.hot.function}", "位于 {stack.hot.function}")


def test_names_name_facts_that_exist(tmp_path: Path) -> None:
    text = changed(("action:", NAMED)).replace("in {stack.hot.function}", "in {stack.hat.function}")
    document, _ = loader.read_file(write(tmp_path, text))
    (fault,) = document.faults
    assert "unknown fact 'stack.hat.function'" in fault.message
    assert "did you mean" in fault.hint


@each(
    ("zh", "provided", "message"),
    [
        (", zh: '位于 {stack.hot.function}'", {"gpu.temperature.core"}, "nothing can tell stack.hot.function"),
        ("", {"gpu.temperature.core", "stack.hot.function"}, "names has no Chinese"),
        (", zh: 位于别处", {"gpu.temperature.core", "stack.hot.function"}, "names tells other facts in Chinese"),
        (", zh: '位于 {stack.hot.function}'", {"gpu.temperature.core", "stack.hot.function"}, ""),
    ],
)
def test_lint_looks_at_names(tmp_path: Path, zh: str, provided: set[str], message: str) -> None:
    text = changed(("action:", NAMED.replace(", zh: '位于 {stack.hot.function}'", zh)))
    _, read = loader.read_file(write(tmp_path, text))
    assert read is not None
    assert [f.message.partition(":")[0] for f in lint([read], provided, set())] == ([message] if message else [])
