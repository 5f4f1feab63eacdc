"""Two looks of one output in one text: what only the earlier one shows is told as past, and nothing where the looks agree."""

from __future__ import annotations

from pathlib import Path

from assistant.diagnosis import Diagnosis, State, diagnose
from assistant.sources import read
from rules.loader import load
from tests.cases import each

CSV = (
    "index, temperature.gpu, clocks_throttle_reasons.hw_thermal_slowdown, clocks.sm, fan.speed [%]\n"
    "0, {}, {}, {}, 40 %\n1, 60, Not Active, 1980, 41 %\n"
)
HOT, COOL, BUSY = CSV.format(91, "Active", 345), CSV.format(58, "Not Active", 1980), CSV.format(71, "Not Active", 1755)
LINKS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0b2f8a71-3c5d-9e40-8a1b-77c0d9e4f210)\n" + "".join(
    f"\t Link {n}: Replay Errors: {{0}}\n\t Link {n}: Recovery Errors: 0\n\t Link {n}: CRC Errors: {{0}}\n\n" for n in range(4)
)  # fmt: skip
PORT = "# Port counters: Lid 12 port 1 (CapMask: 0x5A00)\nSymbolErrorCounter:..............{0}\nPortRcvErrors:...................{0}\n"
ERRORS = (
    'Errors for "gpu07 mlx5_3"\n   GUID 0xa088c20300f1a2c8 port 1: [SymbolErrorCounter == {0}] [PortRcvErrors == {0}]\n'
)

RULE = "+---------------------------+------------------------------------------------+\n"
DIAG = (
    "Successfully ran diagnostic for group.\n" + RULE + "| Diagnostic                | Result                                         |\n"
    + RULE.replace("-", "=") + "| NVML Library              | Pass                                           |\n"
    "| PCIe                      | {}|\n| GPU Memory                | Pass - All                                     |\n" + RULE
)  # fmt: skip
FAILED, PASSED = (DIAG.format(result.ljust(47)) for result in ("Fail - GPU: 3", "Pass - All"))
OTHERS = DIAG.format("Pass - GPUs: 0, 1, 2".ljust(47))


def told(tmp_path: Path, text: str) -> Diagnosis:
    path = tmp_path / "paste.txt"
    path.write_text(text)
    reading = read([], [str(path)])
    return diagnose(reading.observations, load(), cut=reading.cut, earlier=reading.earlier)


@each(
    ("first", "second", "past"),
    [
        (HOT, COOL, "GPU 0 was slowed down by its hardware because it is too hot; not so at the last look."),
        (COOL, BUSY, ""),
        (LINKS.format(412), LINKS.format(0), "Past: 4 links: An NVLink had counted errors: replays 412, recoveries 0, CRC errors 412; not so at the last look."),
        (LINKS.format(0), LINKS.format(0), ""),
        (PORT.format(8812), PORT.format(0), "Port lid12/1: A port of the fabric had counted many errors"),
        (ERRORS.format(1233), ERRORS.format(0), "Port mlx5_3/1: A port of the fabric had counted many errors"),
        (PORT.format(0), PORT.format(0).replace("counters", "extended counters").replace("SymbolError", "XmitData"), ""),
    ],
)  # fmt: skip
def test_what_an_earlier_look_shows_is_past(tmp_path: Path, first: str, second: str, past: str) -> None:
    d = told(tmp_path, f"{first}\n{second}")
    assert d.verdict.state is State.OK
    assert ("Past: " in d.verdict.text.en) is bool(past)
    assert past in d.verdict.text.en
    assert all(f.past for f in d.findings)


def test_what_comes_and_goes_is_more_than_past(tmp_path: Path) -> None:
    d = told(tmp_path, "\n".join([COOL, HOT, COOL, HOT, HOT, BUSY]))
    assert d.verdict.state is State.DEGRADED
    assert "GPU 0 was slowed down by its hardware because it is too hot; came and went 2 times." in d.verdict.text.en


def test_what_holds_now_is_not_called_past(tmp_path: Path) -> None:
    d = told(tmp_path, f"{COOL}\n{HOT}")
    assert d.verdict.state is State.DEGRADED
    assert not any(f.past for f in d.findings)


@each(
    ("first", "second", "past"),
    [(FAILED, PASSED, True), (PASSED, FAILED, False), (FAILED, FAILED, False), (FAILED, OTHERS, False)],
)
def test_a_diagnostic_that_passes_when_it_is_run_again_is_past(
    tmp_path: Path, first: str, second: str, past: bool
) -> None:
    d = told(tmp_path, f"$ dcgmi diag -r 2\n{first}\n$ dcgmi diag -r 2\n{second}")
    assert (d.verdict.state is State.OK) is past
    assert ("Past: GPU 3: DCGM diagnostic failed: PCIe" in d.verdict.text.en) is past


def test_one_look_of_two_gpus_is_no_sequence(tmp_path: Path) -> None:
    rows = HOT.splitlines()
    d = told(tmp_path, "\n".join([*rows[:2], rows[2].replace("Not Active", "Active")]))
    assert not any(f.past for f in d.findings)


def test_processes_of_the_earlier_table_hold_no_gpu_of_the_later_one(tmp_path: Path) -> None:
    busy = (Path(__file__).parents[1] / "captures" / "smi" / "table-590-mig.txt").read_text()
    head, processes = busy.split("| Processes:")
    idle = head.replace("09:00:26", "09:40:26") + "| Processes:" + processes[: processes.index("|    0")]
    path = tmp_path / "two.txt"
    path.write_text(f"{busy}\n{idle}|  No running processes found{' ' * 61}|\n+{'-' * 89}+\n")
    reading = read([], [str(path)])
    held = {o.value for o in reading.observations if o.fact == "gpu.processes" and o.value is not None}
    assert held <= {0}


@each("order", [1, -1])
def test_a_reset_that_was_refused_is_past_where_it_was_done_later(tmp_path: Path, order: int) -> None:
    asked, gpu = "$ nvidia-smi --gpu-reset -i 3", "GPU 00000000:5D:00.0"
    tries = [
        f"{asked}\n{gpu} is currently in use by another process.\n",
        f"{asked}\n{gpu} was successfully reset.\nAll done.\n",
    ]
    d = told(tmp_path, "".join(tries[::order]))
    refused = "A reset of the GPU was refused, it was not tried: in use by another process"
    assert refused in d.verdict.text.en
    assert (d.verdict.state is State.OK) is (order == 1)
