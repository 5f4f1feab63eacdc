"""Known issues: said where signature and version match, never where the version is not known, and gone with the fix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import Diagnosis, diagnose
from assistant.known import known
from assistant.render.view import view
from knowledge.facts import vocabulary
from knowledge.known_issues import COMPONENTS, KnownIssue, known_issues, numbers
from probes.base import Context, lines_of
from probes.parse import kernel_log
from rules.loader import load

LOADED = (
    "Nov 20 03:00:00 n1 kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Nov 30 06:39:21 UTC 2022"
)
SILENT = "Nov 20 04:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 119, pid=1234, name=nvidia-smi, Timeout waiting for RPC from GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8)."
LOST = "Nov 20 04:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus."
rows = st.sampled_from(known_issues())
versions = st.lists(st.integers(0, 999), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


def seen(*lines: str) -> Diagnosis:
    return diagnose(kernel_log.FORMAT.parse(lines_of("\n".join(lines)), Context("kern.log")), load())


def ids(found: Diagnosis) -> set[str]:
    return {k.issue.id for f in found.findings for k in known(f, found.facts)}


def test_a_version_with_the_fault_is_told_with_fix_and_source() -> None:
    found = seen(LOADED.format(version="525.60.13"), SILENT)
    assert "driver-525-gsp-rpc-timeout" in ids(found)
    said = " ".join(" ".join(b.known) for b in view(found, "en").blocks)
    assert "NVIDIA driver 525.60.13" in said
    assert "fixed in 525.105.17" in said
    assert "https://" in said


def test_the_fixed_version_and_another_signature_are_told_nothing() -> None:
    assert "driver-525-gsp-rpc-timeout" not in ids(seen(LOADED.format(version="525.105.17"), SILENT))
    assert not ids(seen(LOADED.format(version="560.35.03"), SILENT))
    assert not ids(seen(LOADED.format(version="525.60.13"), LOST))


def test_a_version_that_is_not_known_says_nothing() -> None:
    assert not ids(seen(SILENT))


def test_rows_name_rules_and_facts_that_are_there() -> None:
    rules = {r.id for r in load().rules}
    for issue in known_issues():
        assert issue.rules <= rules, issue.id
        assert all(name in vocabulary() for name in COMPONENTS[issue.component][1])


@given(rows, versions)
def test_no_fixed_version_is_affected_and_none_before_the_first(issue: KnownIssue, version: str) -> None:
    for fixed in issue.fixed_in:
        assert not issue.affects(fixed)
        assert not issue.affects(f"{fixed}.1")
    if issue.affects(version):
        assert not issue.since or numbers(version) >= issue.since
        assert not issue.until or numbers(version)[: len(issue.until)] <= issue.until


@given(rows, st.text(max_size=12))
def test_what_is_no_version_is_not_affected(issue: KnownIssue, text: str) -> None:
    assert not (issue.affects(text) and not numbers(text))
