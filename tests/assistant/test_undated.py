"""Old faults of an event log: told as long past where nothing took them back, and not where something did."""

from __future__ import annotations

from pathlib import Path

from assistant.diagnosis import State, diagnose
from assistant.sources import read
from rules.loader import load
from tests.cases import each

LOG = "2026-11-16T09:00:03+0000 gpu07 kernel: IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready\n"
BUS = "   1 | 10/02/2026 | 03:14:07 | Critical Interrupt PCIe_Slot4 | Bus Fatal Error | Asserted\n"
SUPPLY = "   2 | 10/05/2026 | 03:14:07 | Power Supply PSU2 Status | Power Supply AC lost | Asserted\n"


@each(
    "entries, told",
    [
        (BUS, "2026-10-02 that no entry takes back: PCIe_Slot4 (Bus Fatal Error)."),
        (BUS + SUPPLY, "2026-10-05 that no entry takes back: PSU2 Status (Power Supply AC lost) (+1 more)."),
        (SUPPLY + SUPPLY.replace("10/05", "10/06").replace("Asserted", "Deasserted"), ""),
        (SUPPLY.replace("Power Supply AC lost", "Presence detected"), ""),
    ],
)
def test_old_faults_of_the_event_log_are_told(tmp_path: Path, entries: str, told: str) -> None:
    path = tmp_path / "paste.txt"
    path.write_text(f"{LOG}\n{entries}")
    reading = read([], [str(path)])
    verdict = diagnose(reading.observations, load(), cut=reading.cut).verdict
    assert verdict.state is State.OK
    assert ("Long past" in verdict.text.en) is bool(told)
    assert told in verdict.text.en
