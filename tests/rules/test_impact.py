"""How much time a finding explains: computed from facts of its subject, ranked by, and never claimed beyond them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.language import Text
from knowledge.observation import Observation, Status
from rules import loader
from rules.engine import Finding, Impact, Role, accounts_for, run
from rules.lint import lint
from rules.model import Bucket, Explains, ImpactSpec, Severity
from tests.cases import each
from tests.rules.files import GOOD, changed, write
from tests.rules.lab import GPUS, base, rule, seen, silent

OF = Text("the window", "窗口")
HOT = {"fact": "level", "op": "at_least", "value": 5}


def explaining(name: str = "slow", share: str = "watts", window: str = "", **more: object) -> Finding:
    """The finding of a rule whose impact is `share`, over what `more` tells as facts."""
    told = [seen("level", 9), *(seen(k, v) for k, v in more.items())]  # type: ignore[arg-type]
    (found,) = run([rule(name, HOT, impact=ImpactSpec(share, window, OF))], base(told)).findings
    return found


def test_a_share_in_percent_becomes_a_fraction_and_seconds_of_the_window() -> None:
    assert explaining(watts=58.0).impact == Impact(0.58, None, OF)
    assert explaining(window="errors", watts=25.0, errors=8).impact == Impact(0.25, 2.0, OF)


@given(st.floats(-1e6, 1e6))
def test_a_share_never_leaves_0_to_1(percent: float) -> None:
    impact = explaining(watts=percent).impact
    assert impact is not None
    assert 0 <= impact.share <= 1


@pytest.mark.parametrize("share", [silent("watts"), silent("watts", Status.UNSUPPORTED), seen("watts", float("inf"))])
def test_what_is_not_known_explains_nothing_and_the_finding_stays(share: Observation) -> None:
    (found,) = run([rule("slow", HOT, impact=ImpactSpec("watts", "", OF))], base([seen("level", 9), share])).findings
    assert found.impact is None


def test_seconds_are_left_out_when_the_window_is_not_known() -> None:
    assert explaining(window="errors", watts=25.0).impact == Impact(0.25, None, OF)


def _order(other: Severity, bucket: Bucket) -> list[str]:
    """Findings on three GPUs of a rule that tells how much time it explains, and of one that does not, as they are ranked."""
    told = [seen("level", 9, g) for g in GPUS]
    told += [seen("watts", w, g) for g, w in zip(GPUS, (5.0, 60.0, 30.0), strict=True)]
    rules = [
        rule("takes-time", HOT, impact=ImpactSpec("watts", "", OF), bucket=Bucket.CHANGE_SETTING),
        rule("other", HOT, severity=other, bucket=bucket),
    ]
    return [f"{f.rule.id} {f.subject.id[5:7]}" for f in run(rules, base(told)).findings]


def test_among_equals_what_explains_more_stands_first_and_strong_actions_above_all() -> None:
    others = [f"other 0{i}" for i in (1, 2, 3)]
    times = ["takes-time 02", "takes-time 03", "takes-time 01"]
    assert _order(Severity.WARNING, Bucket.RESET_GPU) == [*others, *times]
    assert _order(Severity.WARNING, Bucket.CHANGE_SETTING) == [*others, *times]
    assert _order(Severity.WARNING, Bucket.MONITOR) == [*times, *others]
    assert _order(Severity.INFO, Bucket.CHANGE_SETTING) == [*times, *others]


def _related(cause: float, effect: float) -> dict[str, Role]:
    told = [seen("level", 9), seen("watts", cause), seen("errors", effect)]
    rules = [
        rule("cause", HOT, impact=ImpactSpec("watts", "", OF), explains=[Explains("effect")]),
        rule("effect", {"fact": "level", "op": "at_least", "value": 4}, impact=ImpactSpec("errors", "", OF)),
    ]
    return {f.rule.id: f.role for f in run(rules, base(told)).findings}


def test_a_cause_that_explains_less_than_half_of_its_effect_does_not_fold_it() -> None:
    assert _related(50.0, 100) == {"cause": Role.ROOT, "effect": Role.SYMPTOM}
    assert _related(49.0, 100) == {"cause": Role.ROOT, "effect": Role.ROOT}


def test_what_tells_no_time_is_explained_as_before() -> None:
    told = [seen("level", 9), seen("watts", 1.0)]
    rules = [
        rule("cause", HOT, impact=ImpactSpec("watts", "", OF), explains=[Explains("effect")]),
        rule("effect", {"fact": "level", "op": "at_least", "value": 4}),
    ]
    cause, effect = run(rules, base(told)).findings
    assert effect.role is Role.SYMPTOM
    assert accounts_for(cause, effect)


def test_shown_facts_stand_under_the_finding_only_when_they_are_known() -> None:
    told = [seen("level", 9), seen("word", "main.py"), silent("mode")]
    (found,) = run([rule("slow", HOT, shows=("word", "mode", "level"))], base(told)).findings
    assert [(o.fact, o.value) for o in found.because] == [("level", 9), ("word", "main.py")]


# --- rule files ---------------------------------------------------------------------------

_IMPACT = "impact: {share: trace.idle.share, window: trace.window.seconds, of: {en: the window, zh: 窗口}}\naction:"


def _faults(tmp_path: Path, *swaps: tuple[str, str]) -> list[str]:
    document, _ = loader.read_file(write(tmp_path, changed(("action:", _IMPACT)).replace(*swaps[0]) if swaps else GOOD))
    return [f"{f.line}: {f.message}" for f in document.faults]


def test_an_impact_is_read_from_the_file(tmp_path: Path) -> None:
    document, read = loader.read_file(write(tmp_path, changed(("action:", _IMPACT))))
    assert document.faults == []
    assert read is not None
    assert read.impact == ImpactSpec("trace.idle.share", "trace.window.seconds", OF)


@each(
    ("old", "new", "message"),
    [
        ("trace.idle.share", "trace.idle.shore", "unknown fact 'trace.idle.shore'"),
        ("trace.idle.share", "trace.kernel.top", "trace.kernel.top is no number in percent"),
        ("trace.idle.share", "gpu.temperature.core", "gpu.temperature.core is no number in percent"),
        ("trace.window.seconds", "trace.idle.share", "trace.idle.share is no number in s"),
        ("{share: trace.idle.share, ", "{", "key 'share' is missing"),
        ("action:", "shows: [gpu.no.such]\naction:", "unknown fact 'gpu.no.such'"),
    ],
)
def test_an_impact_names_numbers_that_exist(tmp_path: Path, old: str, new: str, message: str) -> None:
    (fault,) = _faults(tmp_path, (old, new))
    assert message in fault


def test_lint_asks_who_tells_what_stands_beside_the_conditions(tmp_path: Path) -> None:
    text = changed(("action:", _IMPACT.replace(", zh: 窗口", "")))
    _, read = loader.read_file(write(tmp_path, text))
    assert read is not None
    assert {f.message for f in lint([read], {"gpu.temperature.core", "trace.idle.share"}, set())} == {
        "of has no Chinese",
        "nothing can tell trace.window.seconds: no probe provides it, it is not derived, nobody is asked",
    }
