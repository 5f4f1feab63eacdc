"""Fabric Manager's own log."""

from __future__ import annotations

from pathlib import Path

from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Status
from probes.base import Context, lines_of
from probes.parse import fabricmanager_log

LOG = Path(__file__).parents[2] / "captures" / "logs" / "fabricmanager-start.log"


def read(text: str) -> list[Observation]:
    return fabricmanager_log.parse(lines_of(text), Context("fm.log", "gpu-7"))


def event(o: Observation) -> Event:
    assert isinstance(o.value, Event)
    return o.value


def test_sxids_have_their_switch_port_and_class() -> None:
    first, second = (o for o in read(LOG.read_text()) if o.fact == "sxid" and o.status is Status.OK)
    assert (str(first.subject), first.subject.host, event(first).code) == ("nvswitch 0000:07:00.0", "gpu-7", 20034)
    assert (event(first).get("severity_word"), event(first).get("link")) == ("Fatal", 37)
    assert (event(second).get("severity_word"), event(second).get("link")) == ("Non-fatal", 5)
    assert first.clock is Clock.LOCAL
    assert first.source.line == 6


def test_other_errors_and_the_version() -> None:
    found = read(LOG.read_text())
    [error] = [o for o in found if o.fact == "fm_error" and o.status is Status.OK]
    assert event(error).get("severity") == "error"
    assert [o.value for o in found if o.fact == "node.fabricmanager.version"] == ["550.90.07"]


def test_a_version_mismatch_names_both() -> None:
    [one] = [
        o
        for o in read(
            "[Jan 08 2025 09:00:01] [ERROR] [tid 1] fabric manager NVIDIA GPU driver interface version 550.90.07 don't match "
            "with driver version 550.54.15. Please update with matching NVIDIA driver package."
        )
        if o.fact == "fm_version_mismatch" and o.value
    ]
    assert event(one).fields["fabric_manager"] == "550.90.07"
    assert event(one).fields["driver"] == "550.54.15"


def test_coverage_is_the_window_of_the_log() -> None:
    silent = {o.fact: o for o in read(LOG.read_text()) if o.status is Status.NONE_SEEN}
    assert set(silent) == set(fabricmanager_log.EVENTS)
    window = silent["fm_nothing_to_do"].window
    assert window is not None
    assert window[1] - window[0] == 659 * 10**9


def test_imex_has_the_same_layout_and_names_the_node_that_it_lost() -> None:
    found = read(
        "[Nov 28 2026 10:01:10] [INFO] [tid 4121] IMEX version 570.124.06 is running with the following configuration options\n"
        "[Nov 28 2026 10:44:20] [WARNING] [tid 4133] Connection to node 2 with ip address 10.50.0.13 lost. Number of times disconnected: 1\n"
        "[Nov 28 2026 10:44:21] [ERROR] [tid 4133] Failed to connect to remote IMEX server 10.50.0.13: node 2, version mismatch 565.57.01\n"
    )
    lost = [event(o) for o in found if o.fact == "imex_connection_lost" and o.status is Status.OK]
    assert [(e.get("peer"), e.get("address"), e.get("why")) for e in lost] == [
        (2, "10.50.0.13", None),
        (2, "10.50.0.13", "version mismatch 565.57.01"),
    ]
    assert {o.fact for o in found} == {"node.version.imex", "imex_connection_lost", "imex_error"}


def test_other_text_is_not_read() -> None:
    for text in ("", "[  1.0] NVRM: x", "Jan 08 09:00:01 n nv-fabricmanager[7]: x"):
        [only] = read(text)
        assert (only.fact, only.status) == ("log.fabricmanager.readable", Status.FAILED)
        assert fabricmanager_log.sniff(text) == 0
    assert fabricmanager_log.sniff(LOG.read_text()) > 90


def test_values_fit_the_vocabulary() -> None:
    for o in read(LOG.read_text()):
        assert o.fact in fabricmanager_log.FORMAT.provides
        assert o.status is not Status.OK or vocabulary()[o.fact].accepts(o.value)
