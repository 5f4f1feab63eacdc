from __future__ import annotations

import graphlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge import runbook
from knowledge.errors import Fault, UnknownNameError
from knowledge.runbook import PLACEHOLDERS, Consent, Risk, Runbook, Step, fill, placeholders
from knowledge.schema import runbook as schema
from knowledge.schema.runbook_flow import leads_of
from tests.cases import each

REPOSITORY = Path(runbook.__file__).parents[1]
REQUIRED = {
    "gpu-off-bus",
    "uncorrectable-ecc",
    "row-remap-pending",
    "row-remap-failure",
    "nvlink-down",
    "nvlink5-errors",
    "gsp-timeout",
    "thermal",
    "power-brake",
    "pcie-degraded",
    "fabric-manager",
    "driver-mismatch",
    "no-devices",
    "application-fault",
    "nccl-timeout",
    "ib-port-down",
    "cuda-oom",
    "host-oom",
    "shared-memory",
    "zombie-memory",
    "input-bound-job",
    "page-retirement",
    "gpu-init-failed",
    "power-cabling",
    "contact-support",
    "mig-configuration",
    "silent-data-corruption",
    "clock-misconfiguration",
    "exporter-metrics",
    "kernel-crash",
    "storage-stall",
    "unknown-xid",
}

GOOD = """\
---
id: fan-stopped
title:
  en: A fan stopped
  zh: 风扇停转
applies: [xid 79, sxid 12028, thermal.fan]
summary:
  en: Replace the fan.
  zh: 更换风扇。
steps:
  - id: look
    title: {en: Look, zh: 查看}
    do: {en: Read the sensors., zh: 读取传感器。}
    command: ipmitool -H {bmc} sdr type 'Fan | Cooling'
    risk: safe
    consent: none
    on_failure: swap
  - id: swap
    title: {en: Swap, zh: 更换}
    do: {en: Swap the fan., zh: 更换风扇。}
    command: systemctl stop app@{node}
    risk: disruptive
    consent: operator
    when: {en: The node is drained., zh: 节点已排空。}
    verify: {en: It turns., zh: 风扇转动。}
    verify_command: sh -c 'ipmitool sdr | grep -c FAN*'
    on_failure: contact-support
references:
  - https://example.org/fans
---

## English

It is quiet. Too quiet.

## 中文

太安静了。
"""


def lint_text(folder: Path, text: str, name: str = "fan-stopped") -> list[Fault]:
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return runbook.lint(folder)


def place(text: str, fragment: str) -> tuple[int, int]:
    """Line and column of the only place where `fragment` stands."""
    assert text.count(fragment) == 1, fragment
    before = text[: text.index(fragment)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def steps() -> Iterator[tuple[Runbook, Step]]:
    for book in runbook.all_runbooks():
        for step in book.steps:
            yield book, step


def commands() -> list[str]:
    return sorted({c for _, step in steps() for c in (step.command, step.verify_command) if c})


# --- what is shipped ---------------------------------------------------------------------------------------------


def test_shipped_runbooks_are_clean() -> None:
    assert [str(fault) for fault in runbook.lint()] == []


def test_required_runbooks_exist() -> None:
    assert {book.id for book in runbook.all_runbooks()} >= REQUIRED


def test_every_text_stands_in_both_languages() -> None:
    for book, step in steps():
        for text in (book.title, book.summary, book.body, step.title, step.do):
            assert text.en
            assert text.zh
        for optional in (step.when, step.verify):
            assert bool(optional.en) == bool(optional.zh)


def test_pages_are_half_a_screen() -> None:
    for book in runbook.all_runbooks():
        assert 60 <= len(book.body.en.split()) <= 260, book.id
        assert 120 <= len(book.body.zh) <= 900, book.id


# Programs and options that change something, written down apart from the runbooks.
CHANGES = re.compile(
    r"--gpu-reset|--reset-|--power-limit|-mig [01]|mig .*-(cgi|cci|dci|dgi)\b|port_state"
    r"|systemctl (start|stop|restart|enable|disable|reboot|poweroff)|chassis power|^kill|^rm |^umount|^modprobe"
    r"|scontrol (update|requeue|reboot|cancel)|kubectl (cordon|uncordon|drain|label|delete|rollout)"
    r"|diag -r (2|3|4|[a-z])|nvidia-bug-report|^srun"
)
LOSES = re.compile(r"^kill|^rm |kubectl (drain|delete)|mig .*-(dci|dgi)\b|scontrol requeue")


def test_what_changes_something_is_never_called_safe() -> None:
    seen = 0
    for book, step in steps():
        if CHANGES.search(step.command):
            seen += 1
            assert step.risk is not Risk.SAFE, (book.id, step.id)
        if step.command:  # what is lost by hand, the step says itself
            assert (step.risk is Risk.DESTRUCTIVE) == bool(LOSES.search(step.command)), (book.id, step.id)
        assert not CHANGES.search(step.verify_command), (book.id, step.id)
    assert seen > 50


def test_nothing_disruptive_without_consent() -> None:
    for book, step in steps():
        assert step.risk is Risk.SAFE or step.consent is not Consent.NONE, (book.id, step.id)
        assert step.risk is not Risk.DESTRUCTIVE or step.consent is Consent.OWNER, (book.id, step.id)


def test_the_same_command_costs_the_same_everywhere() -> None:
    costs: dict[str, tuple[Risk, Consent]] = {}
    for book, step in steps():
        if step.command:
            assert costs.setdefault(step.command, (step.risk, step.consent)) == (step.risk, step.consent), (
                book.id,
                step.id,
            )


def test_a_reset_comes_after_drain_and_holders() -> None:
    seen = 0
    for book in runbook.all_runbooks():
        before: list[str] = []
        for step in book.steps:
            if "--gpu-reset" in step.command:
                seen += 1
                text = "\n".join(before)
                assert "state=drain" in text, book.id
                assert "kubectl cordon" in text, book.id
                assert "fuser -v /dev/nvidia" in text, book.id
                assert step.when, book.id
            before.append(step.command)
    assert seen > 8


def test_a_node_that_was_drained_has_a_way_back_or_goes_to_the_vendor() -> None:
    for book in runbook.all_runbooks():
        text = "\n".join(step.command for step in book.steps)
        if book.id not in ("contact-support", "silent-data-corruption"):
            assert ("state=drain" in text) == ("state=resume" in text), book.id
            assert ("kubectl cordon" in text) == ("kubectl uncordon" in text), book.id


def test_the_long_diagnostic_is_never_a_routine() -> None:
    for book, step in steps():
        if re.search(r"diag -r [34]", step.command):
            assert book.id in ("contact-support", "silent-data-corruption", "application-fault")


def test_failures_lead_on_and_never_in_a_circle() -> None:
    graph: dict[str, set[str]] = {book.id: set() for book in runbook.all_runbooks()}
    for book, step in steps():
        if step.on_failure in graph:
            graph[book.id].add(step.on_failure)
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(graph)


def test_every_placeholder_is_used_and_explained() -> None:
    used = {name for command in commands() for name in placeholders(command)}
    assert used == set(PLACEHOLDERS)
    assert all(placeholder.meaning.en and placeholder.meaning.zh for placeholder in PLACEHOLDERS.values())


def test_lookup() -> None:
    book = runbook.runbook("gpu-off-bus")
    assert "xid 79" in book.applies
    assert book.step("evidence").risk is Risk.SAFE
    assert book in runbook.about("xid 79")
    assert runbook.about("xid 99999") == ()
    with pytest.raises(UnknownNameError, match="gpu-off-bus"):
        runbook.runbook("gpu-of-bus")
    with pytest.raises(UnknownNameError, match="evidence"):
        book.step("evidense")


# --- filling in --------------------------------------------------------------------------------------------------


def substitute(word: str, values: dict[str, str]) -> str:
    """What a word must become: the plain value where `fill` took it, the placeholder where it did not."""
    return re.sub(
        r"\{(\w+)\}",
        lambda m: values[m[1]] if m[1] in values and fill(m[0], values) != m[0] else m[0],
        word,
    )


@given(st.data())
def test_a_value_never_leaves_its_word(data: st.DataObject) -> None:
    value = st.one_of(
        st.text(max_size=12),
        st.text(st.sampled_from(" '\"\\$`;|&<>*?(){}!#~=-\n\t"), max_size=8),
        st.sampled_from(["{node}", "{pid}", "7", "a; rm -rf /", "$(id)", "' '"]),
    )
    values = {name: data.draw(value, label=name) for name in PLACEHOLDERS}
    for command in commands():
        if placeholders(command):
            assert shlex.split(fill(command, values)) == [substitute(word, values) for word in shlex.split(command)]


@given(st.text(min_size=1, max_size=20))
def test_every_printable_value_is_taken(value: str) -> None:
    taken = fill("kubectl cordon {node}", {"node": value})
    if value.isprintable() and not value.startswith("-"):
        assert shlex.split(taken) == ["kubectl", "cordon", value]
    else:
        assert taken == "kubectl cordon {node}"


@pytest.mark.process
@each("value", ["a b", "$(id)", "`id`", "a;id", "it's", 'say "x"', "*", "~root", "!!", "#", "a\\"])
def test_a_real_shell_sees_one_word(value: str) -> None:
    script = "set -- " + fill("x {node} nodename={node}", {"node": value}) + '; printf "%s\\n" "$#" "$2" "$3"'
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.split("\n")[:3] == ["3", value, f"nodename={value}"]


@each(
    ("values", "left"),
    [
        ({}, True),
        ({"pid": ""}, True),
        ({"pid": "-1"}, True),
        ({"pid": "0"}, True),
        ({"pid": "12x"}, True),
        ({"pid": "１２"}, True),
        ({"pid": "12\n"}, True),
        ({"pid": "4242"}, False),
        ({"pid": 4242}, False),
    ],
)
def test_an_unusable_value_leaves_the_placeholder(values: dict[str, str | int], left: bool) -> None:
    assert fill("kill -TERM {pid}", values) == ("kill -TERM {pid}" if left else "kill -TERM 4242")


def test_index_zero_is_a_gpu() -> None:
    assert fill("dcgmi diag -r 1 -i {gpu_index}", {"gpu_index": 0}) == "dcgmi diag -r 1 -i 0"


def test_placeholders_in_order_each_once() -> None:
    assert placeholders("a {pod} -n {namespace} {pod} {{.X}} {.items}") == ("pod", "namespace")


# --- lint --------------------------------------------------------------------------------------------------------


def test_the_good_one_is_good(tmp_path: Path) -> None:
    assert lint_text(tmp_path, GOOD) == []


ONE_FAULT = [
    ("unknown key", "    risk: safe\n", "    risk: safe\n    colour: red\n", "colour", "unknown key 'colour'"),
    ("unknown top key", "references:\n", "reference: x\nreferences:\n", "reference: x", "did you mean references"),
    ("missing key", "    risk: safe\n", "", "id: look", "key 'risk' is missing"),
    ("bad risk", "risk: safe", "risk: harmless", "risk: harmless", "'safe', 'disruptive' or 'destructive'"),
    ("missing translation", "{en: Look, zh: 查看}", "{en: Look}", "title: {en: Look}", "key 'zh' is missing"),
    ("empty translation", "zh: 查看}", 'zh: ""}', 'zh: ""', "the Chinese text is empty"),
    ("copied translation", "zh: 查看}", "zh: Look}", "zh: Look}", "no Chinese characters"),
    ("swapped translation", "en: It turns.", "en: 风扇转动了", "en: 风扇转动了", "holds Chinese characters"),
    ("key twice", "    consent: none\n", "    consent: none\n    risk: safe\n", None, "key 'risk' stands twice"),
    ("not a boolean", "    command: ipmitool -H {bmc} sdr type 'Fan | Cooling'", "    command: true", "command: true", "string"),
    ("risk without consent", "consent: operator", "consent: none", None, "a disruptive step needs consent"),
    ("wrong id", "id: fan-stopped", "id: fan-stops", "id: fan-stops", "is not the file name 'fan-stopped'"),
    ("id with spaces", "- id: look", "- id: Look Here", "id: Look Here", "an id is lower-case words"),
    ("step twice", "    on_failure: swap\n  - id: swap", "  - id: look", None, "step 'look' stands twice"),
    ("nowhere", "on_failure: contact-support", "on_failure: contact-suport", "on_failure: contact-suport", "did you mean contact-support"),
    ("back", "on_failure: contact-support", "on_failure: look", "on_failure: look", "leads back"),
    ("to itself", "on_failure: contact-support", "on_failure: swap\n    # end", None, "leads back"),
    ("unknown placeholder", "{bmc}", "{gpu_idx}", "command: ipmitool", "did you mean gpu_index"),
    ("quoted placeholder", "{bmc}", "'{bmc}'", "command: ipmitool", "stands inside quotes"),
    ("needs a shell", "'Fan | Cooling'", "Fan | less", "command: ipmitool", "| needs a shell"),
    ("expands", "'Fan | Cooling'", '"$HOME"', "command: ipmitool", "$ needs a shell"),
    ("open quote", "'Fan | Cooling'", "'Fan", "command: ipmitool", "a quote is not closed"),
    ("placeholder as program", "systemctl stop app@{node}", '"{node} stop"', 'command: "{node}', "cannot be a placeholder"),
    ("no verify", "    verify: {en: It turns., zh: 风扇转动。}\n", "", "verify_command: sh", "without verify"),
    ("bad topic", "sxid 12028", "XID:12028", "XID:12028", "a topic is"),
    ("bad address", "https://example.org/fans", "see the manual", "see the manual", "one https address"),
    ("missing section", "## 中文\n\n太安静了。\n", "", None, "section '## 中文' is missing"),
    ("empty section", "太安静了。", "", "## 中文", "section '## 中文' is empty"),
    ("odd section", "## English\n", "## Francais\n\nSilence.\n\n## English\n", "## Francais", "unknown section"),
    ("text before", "## English\n", "Hello.\n\n## English\n", "Hello.", "text before the first section"),
    ("command in page", "It is quiet.", "Run ipmitool -H {bmc} sdr type 'Fan | Cooling' now.", "Run ipmitool", "commands stand in steps"),
    ("code in page", "It is quiet.", "```\nls\n", "```", "commands stand in steps"),
]  # fmt: skip


@each(("old", "new", "at", "says"), [case[1:] for case in ONE_FAULT], ids=[c[0] for c in ONE_FAULT])
def test_each_fault_is_seen_at_its_place(tmp_path: Path, old: str, new: str, at: str | None, says: str) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    faults = lint_text(tmp_path, text)
    assert [says in str(fault) for fault in faults] == [True], faults
    if at is not None:
        assert (faults[0].line, faults[0].column) == place(text, at)
    assert faults[0].file.endswith("fan-stopped.md")


def test_ten_faults_are_ten(tmp_path: Path) -> None:
    edits = [
        ("id: fan-stopped", "id: other-name"),
        ("[xid 79, sxid 12028, thermal.fan]", "[XID]"),
        ("title: {en: Look, zh: 查看}", "title: {en: Look}"),
        ("{bmc}", "{bcm}"),
        ("consent: none", "consent: maybe"),
        ("on_failure: swap", "on_failure: swop"),
        ("consent: operator", "consent: none\n    colour: red"),
        ("https://example.org/fans", "a book"),
        ("太安静了。", ""),
    ]
    text = GOOD
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    faults = lint_text(tmp_path, text)
    assert len(faults) == 10, faults
    assert len({(fault.line, fault.column) for fault in faults}) == 10
    assert faults == sorted(faults)


@each("text", ["", "# just a page\n", "---\nid: x\n", "id: x\n---\n"])
def test_without_front_matter(tmp_path: Path, text: str) -> None:
    assert [(f.line, "front matter" in f.message) for f in lint_text(tmp_path, text)] == [(1, True)]


def test_broken_yaml_has_its_line(tmp_path: Path) -> None:
    faults = lint_text(tmp_path, GOOD.replace("  en: A fan stopped", "  en: [A fan stopped"))
    assert len(faults) == 1
    assert faults[0].line in (4, 5)


@each("front", ["- a\n- b", "just words", "steps: 7", "steps: [1, {id: {}}, []]", "id: [x]"])
def test_odd_shapes_are_faults_not_crashes(tmp_path: Path, front: str) -> None:
    assert lint_text(tmp_path, f"---\n{front}\n---\n\n## English\n\na\n\n## 中文\n\n一\n")


def test_unreadable_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_bytes(b"---\nid: \xff\n---\n")
    assert [fault.message.split(":")[0] for fault in runbook.lint(tmp_path)] == ["cannot be read"]


def test_a_file_that_cannot_be_read_leads_nowhere_whatever_it_stands_in_the_place_of(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped" / "thermal.md", tmp_path / "site" / "thermal.md"
    for path, text in ((shipped, b"    on_failure: gpu-reset\n"), (own, b"\xff")):
        path.parent.mkdir()
        path.write_bytes(text)
    assert leads_of([shipped]) == {"thermal": frozenset({"gpu-reset"})}
    assert leads_of([shipped, own]) == {"thermal": frozenset()}


def test_a_step_may_not_be_called_like_a_runbook(tmp_path: Path) -> None:
    text = GOOD.replace("- id: swap", "- id: thermal").replace("on_failure: swap", "on_failure: thermal")
    assert [f.message for f in lint_text(tmp_path, text)] == ["step 'thermal' has the name of a runbook"]


@given(st.data())
def test_damage_never_crashes_the_linter(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 80)))
    text = GOOD[:start] + data.draw(st.text(st.sampled_from("ab:-{}[]'\"\n #|&*?!\t中\x00"), max_size=6)) + GOOD[end:]
    _, faults = schema.read(text, "fan-stopped.md", frozenset({"contact-support"}))
    lines = text.count("\n") + 2
    assert all(1 <= fault.line <= lines and fault.column >= 1 for fault in faults)


# --- loading -----------------------------------------------------------------------------------------------------


def loaded_in_fresh_process(root: Path, cache: Path) -> list[str]:
    """Ids of all runbooks, then the heavy modules that loading them pulled in."""
    code = (
        "import json, sys; from knowledge import runbook; ids = [b.id for b in runbook.all_runbooks()]; "
        "print(json.dumps(ids + [m for m in ('pydantic', 'yaml', 'numpy', 'rich') if m in sys.modules]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(root), "GPUDIAG_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=True, timeout=120
    )
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.mark.process
def test_a_second_start_loads_nothing_heavy(tmp_path: Path) -> None:
    ids = [book.id for book in runbook.all_runbooks()]
    assert loaded_in_fresh_process(REPOSITORY, tmp_path)[: len(ids)] == ids
    assert loaded_in_fresh_process(REPOSITORY, tmp_path) == ids


@pytest.mark.process
def test_the_wheel_needs_neither_pages_nor_schema(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("runbooks", "schema", "data", "_compiled", "__pycache__")
    shutil.copytree(REPOSITORY / "knowledge", tmp_path / "knowledge", ignore=left_out)
    (tmp_path / "knowledge" / "_compiled").mkdir()
    shipped = tmp_path / "knowledge" / "_compiled" / "runbooks.json"
    shipped.write_text(json.dumps(runbook.build_all(), ensure_ascii=False), encoding="utf-8")
    assert loaded_in_fresh_process(tmp_path, tmp_path / "cache") == [book.id for book in runbook.all_runbooks()]
    assert not (tmp_path / "cache").exists()
