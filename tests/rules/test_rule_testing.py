"""Rules' own tests: nothing that cannot be read passes, and a clause that no test covers is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.errors import InputError
from knowledge.observation import Event, Observation, Scope, Source, Status, Subject, gpu, node
from rules import loader, testing
from rules.model import Rule
from rules.testing import Survivor, mutants, subject_of
from tests.cases import each
from tests.rules.files import GOOD, changed, write


def parse(kind: str, text: str) -> list[Observation]:
    """Stands for the parsers above: one XID with the number that the text holds."""
    if text == "unreadable":
        raise InputError("this text is of no known format")
    here = Source(kind, "case.txt", 1)
    return [Observation("xid", gpu("0000:01:00.0", "n1"), Event(int(text), {}), source=here),
            Observation("xid", node("n1"), status=Status.NONE_SEEN, source=here)]  # fmt: skip


def read(tmp_path: Path, text: str) -> Rule:
    document, rule = loader.read_file(write(tmp_path, text))
    assert rule is not None, document.faults
    return rule


def cases(tmp_path: Path, *tests: str, when: str = "") -> list[testing.Outcome]:
    """Outcomes of these cases of the rule."""
    head, _, _ = GOOD.partition("tests:")
    if when:
        head = head.replace(head[head.index("params:") : head.index("action:")], f"when: {when}\n")
    return testing.run([read(tmp_path, head + "tests:\n" + "".join(f"  - {t}\n" for t in tests))], parse)


XID = "{event: xid, where: {code: 79}}"
HOT = "facts: [{fact: gpu.temperature.core, value: 90}]"


def test_cases_that_hold(tmp_path: Path) -> None:
    outcomes = testing.run([read(tmp_path, GOOD)], parse)
    assert [(o.case, o.got, o.passed) for o in outcomes] == [
        ("hot", "matched", True), ("cool", "not_matched", True), ("nobody looked", "unknown", True),
    ]  # fmt: skip


@pytest.mark.parametrize("expect", ["not_matched", "unknown"])
def test_a_case_that_does_not_hold(tmp_path: Path, expect: str) -> None:
    (outcome,) = cases(tmp_path, f"{{name: a, given: {{{HOT}}}, expect: {expect}}}")
    assert not outcome.passed
    assert outcome.problem == f"expected {expect}, got matched"


@pytest.mark.parametrize("key", ["kmsg", "log", "input"])
def test_text_goes_through_the_parser(tmp_path: Path, key: str) -> None:
    outcomes = cases(
        tmp_path, f"{{name: a, given: {{{key}: '79'}}, expect: matched}}",
        f"{{name: b, given: {{{key}: ['48', '63']}}, expect: not_matched}}",
        "{name: c, given: {}, expect: unknown}", when=XID,
    )  # fmt: skip
    assert [o.problem for o in outcomes] == ["", "", ""]


@each(
    "given",
    [
        "{kmsg: unreadable}", "{kmsg: not a number}", "{kmsg: 5}", "{kmsg: [5]}", "{kmsg: {a: b}}", "{kmsgs: '79'}",
        "{facts: [{fact: gpu.temperature.cor, value: 1}]}", "{facts: [{fact: gpu.temperature.core, value: hot}]}",
        "{facts: [{value: 1}]}", "{facts: [5]}", "{facts: 5}", "{facts: [{fact: xid, value: 5}]}",
        "{facts: [{fact: gpu.temperature.core, value: 1, status: fine}]}", "{facts: [{fact: gpu.temperature.core}]}",
        "{facts: [{fact: gpu.temperature.core, value: 1, on: 'gpus:1'}]}", "{facts: [{fact: gpu.temperature.core, value: 1, at: soon}]}",
        "{facts: [{fact: gpu.temperature.core, value: 1, valeu: 2}]}", "{as_of: soon}", "{as_of: 5}", "{kmsg: ~}",
        "{facts: [{fact: gpu.temperature.core, value: 1, origin: guessed}]}", "{facts: [{fact: gpu.on_bus, value: 1}]}",
    ],
)  # fmt: skip
@each("expect", ["matched", "not_matched", "unknown"])
def test_a_case_that_cannot_be_read_is_a_failure(tmp_path: Path, given: str, expect: str) -> None:
    (outcome,) = cases(tmp_path, f"{{name: a, given: {given}, expect: {expect}}}")
    assert not outcome.passed
    assert outcome.got == "unreadable"


def test_no_rules_and_no_cases_are_no_outcomes(tmp_path: Path) -> None:
    """Whoever counts them must say that nothing was tested; nothing here passes by itself."""
    bare = read(tmp_path, GOOD.partition("tests:")[0])
    assert testing.run([], parse) == []
    assert testing.run([bare], parse) == []
    assert len(testing.mutate([bare], parse)) == 1, "without cases every mutant survives"


@each(
    ("more", "problem"),
    [
        ("grade: confirmed", ""), ("grade: possible", "expected grade possible, got confirmed"),
        ("bucket: MONITOR", ""), ("bucket: RESET_GPU", "expected action RESET_GPU, got MONITOR"),
        ("count: 1", ""), ("count: 2", "expected 2 findings, got 1"), ("count: 0", "expected 0 findings, got 1"),
    ],
)  # fmt: skip
def test_what_a_case_may_ask_besides(tmp_path: Path, more: str, problem: str) -> None:
    (outcome,) = cases(tmp_path, f"{{name: a, given: {{{HOT}}}, expect: matched, {more}}}")
    assert outcome.problem == problem


def test_what_is_ruled_out_is_not_matched(tmp_path: Path) -> None:
    text = changed(("why:", "excludes: [{fact: gpu.on_bus, op: is, value: false}]\nwhy:"),
                   ("expect: matched", "expect: not_matched, grade: ruled_out"),
                   ("value: 90}", "value: 90}, {fact: gpu.on_bus, value: false}"))  # fmt: skip
    assert testing.run([read(tmp_path, text)], parse)[0].problem == ""


@each(
    ("text", "subject"),
    [
        ("node:n2", node("n2")),
        ("gpu:0000:3b:00.0", gpu("0000:3b:00.0", "n1")),
        ("gpu:0000:3b:00.0@node:n2", gpu("0000:3b:00.0", "n2")),
        ("link:3@gpu:0000:3b:00.0", Subject(Scope.LINK, "3", gpu("0000:3b:00.0", "n1"))),
        ("rank:3", Subject(Scope.RANK, "3")),
        ("rank:3@job:7", Subject(Scope.RANK, "3", Subject(Scope.JOB, "7"))),
    ],
)
def test_subjects_in_cases(text: str, subject: Subject) -> None:
    assert subject_of(text) == subject


# --- mutation -----------------------------------------------------------------------------

BOTH = "{all: [{event: xid, where: {code: 79}}, {fact: gpu.on_bus, op: is, value: false}]}"
LOST, THERE = "{fact: gpu.on_bus, value: false}", "{fact: gpu.on_bus, value: true}"


def survivors(tmp_path: Path, when: str, *tests: str, more: str = "") -> list[Survivor]:
    head, _, _ = GOOD.partition("tests:")
    head = head.replace(head[head.index("params:") : head.index("action:")], f"when: {when}\n{more}")
    rule = read(tmp_path, head + "tests:\n" + "".join(f"  - {t}\n" for t in tests))
    assert all(o.passed for o in testing.run([rule], parse))
    return testing.mutate([rule], parse)


def test_well_tested_clauses_leave_no_survivor(tmp_path: Path) -> None:
    assert survivors(
        tmp_path, BOTH, f"{{name: a, given: {{kmsg: '79', facts: [{LOST}]}}, expect: matched}}",
        f"{{name: b, given: {{kmsg: '48', facts: [{LOST}]}}, expect: not_matched}}",
        f"{{name: c, given: {{kmsg: '79', facts: [{THERE}]}}, expect: not_matched}}",
    ) == []  # fmt: skip


def test_a_clause_that_no_test_covers_is_found(tmp_path: Path) -> None:
    either = "{any: [{event: xid, where: {code: 79}}, {fact: gpu.on_bus, op: is, value: false}]}"
    found = survivors(tmp_path, either, "{name: a, given: {kmsg: '79', facts: [" + LOST + "]}, expect: matched}")
    assert {(s.path, s.change) for s in found} == {
        ("when", "any turned into all"), ("when.any.0", "negated"), ("when.any.1", "negated"),
    }  # fmt: skip


@pytest.mark.parametrize("key", ["confirms", "excludes"])
def test_what_confirms_and_excludes_is_mutated_too(tmp_path: Path, key: str) -> None:
    more = f"{key}: [{{fact: gpu.on_bus, op: is, value: false}}]\n"
    only = "{name: a, given: {kmsg: '79'}, expect: matched}"
    tested = f"{{name: b, given: {{kmsg: '79', facts: [{THERE}]}}, expect: matched}}"
    no = "{name: c, given: {kmsg: '48'}, expect: not_matched}"
    assert [s.path for s in survivors(tmp_path, XID, only, no, more=more)] == [f"{key}.0"]
    assert survivors(tmp_path, XID, only, tested, no, more=more) == []


def test_every_clause_has_a_mutant(tmp_path: Path) -> None:
    rule = read(tmp_path, changed(("why:", "confirms: [{known: gpu.on_bus}]\nexcludes: [{known: gpu.on_bus}]\nwhy:")))
    found = list(mutants(rule))
    assert [(path, change) for path, change, _ in found] == [
        ("when", "negated"), ("confirms.0", "negated"), ("excludes.0", "negated"),
    ]  # fmt: skip
    assert all(mutant != rule for _, _, mutant in found)
