"""What nobody understood is never fine: error lines of drivers in unknown words, rows that go on, words that are no host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.diagnosis import State, diagnose
from assistant.sources import parse_text
from knowledge.observation import Event
from rules.loader import load

DRIVERS = (
    "NVRM: GPU2 kfooBar_IMPL:",
    "amdgpu 0000:03:00.0: amdgpu:",
    "mlx5_core 0000:0b:00.0:",
    "nvidia-modeset: WARNING:",
    "pcieport 0000:00:01.0:",
)
BAD = ("failed", "timed out", "Fatal condition", "hung", "unrecoverable", "assertion", "is stuck")
WORDS = st.lists(
    st.sampled_from(["the", "flux", "capacitor", "of", "unit", "seven", "gave", "0x1234", "state"]), max_size=6
).map(" ".join)


def check(text: str) -> State:
    """What is said of a kernel log."""
    return diagnose(parse_text("kmsg", text), load()).verdict.state


@given(driver=st.sampled_from(DRIVERS), before=WORDS, bad=st.sampled_from(BAD), after=WORDS)
def test_a_failure_in_unknown_words_is_not_ok(driver: str, before: str, bad: str, after: str) -> None:
    calm = (
        "[    1.000000] Linux version 6.8.0\n[   14.650646] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n"
    )
    assert check(calm) is not State.UNKNOWN
    assert check(f"{calm}[   84.300480] {driver} {before} {bad} {after}\n") is not State.OK


@pytest.mark.parametrize(
    "line",
    [
        "pcieport 0000:00:01.0: AER: enabled with IRQ 26",
        "amdgpu 0000:03:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
        "nvidia 0000:3b:00.0: enabling device (0000 -> 0003)",
        "mlx5_core 0000:0b:00.0: mlx5_pcie_event: PCIe slot advertised sufficient power (27W).",
        "NVRM: no errors found",
        "usb 1-1: device descriptor read/64, error -71",  # of no driver of which this log is read
    ],
)
def test_what_takes_its_failure_back_is_fine(line: str) -> None:
    assert check(f"[    1.000000] Linux version 6.8.0\n[   84.300480] {line}\n") is State.OK


def test_how_many_and_the_first_are_told() -> None:
    lines = "".join(f"[  {84 + i}.300480] NVRM: GPU2 kfooBar_IMPL: flux capacitor {i} failed\n" for i in range(1, 8))
    verdict = diagnose(parse_text("kmsg", "[    1.000000] Linux version 6.8.0\n" + lines), load()).verdict
    assert "7 error lines" in verdict.text.en
    assert "flux capacitor 1 failed" in verdict.text.en


def test_a_second_result_in_a_row_without_a_name_is_a_result() -> None:
    table = """\
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
| PCIe                      | Pass - GPUs: 1, 2                              |
|                           | Fail - GPU: 0                                  |
| Warning                   | GPU 0 cannot be reached                        |
+---------------------------+------------------------------------------------+
"""
    events = [o for o in parse_text("input", table) if o.fact == "dcgm_diag" and isinstance(o.value, Event)]
    assert {o.subject.id: o.value.get("status") for o in events if isinstance(o.value, Event)} == {
        "index:0": "fail", "index:1": "pass", "index:2": "pass",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["19:57:01", "19:57", "1234", "12.5", "Nov", "Okt"])
def test_a_time_a_number_or_a_month_is_no_host(word: str) -> None:
    line = f"{word} kernel: NVRM: Xid (PCI:0000:0b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"
    (found,) = (o for o in parse_text("kmsg", line) if o.fact == "xid" and isinstance(o.value, Event))
    assert found.subject.host == ""


@pytest.mark.parametrize(
    ("status", "severity"),
    [
        ("0xba00000000000108", "uncorrected"),
        ("0x98000800003e0000", "poison"),
        ("0x9800100000000108", "deferred"),
        ("0x9800000000000108", "corrected"),
    ],
)
def test_a_record_of_amds_check_architecture_says_how_bad_it_is(status: str, severity: str) -> None:
    line = f"[13850.927941] amdgpu 0000:42:00.0: {{1}}[Hardware Error]: aca entry[00].STATUS={status}\n"
    (found,) = (o.value for o in parse_text("kmsg", line) if o.fact == "amdgpu_ras" and isinstance(o.value, Event))
    assert found.get("severity") == severity
