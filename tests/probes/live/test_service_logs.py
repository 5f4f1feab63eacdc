"""The journal of NVIDIA's services, and Fabric Manager's own log, on a machine."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from knowledge.observation import Clock, Event, Observation, Status
from probes.host import CallKind, ReplayHost, Reply
from probes.live import ProbeRequest, fabric_manager_log, service_log
from probes.live._kernel_sources import BOOTS

S, HOUR, DAY = 10**9, 3600 * 10**9, 86_400 * 10**9
NOW = 1_795_000_000 * S
FAILED = "systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'."


def line(at: int, text: str) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000+0000 ", time.gmtime(at // S)) + text + "\n"


def boots(first: int, last: int) -> Reply:
    stamp = "%a %Y-%m-%d %H:%M:%S UTC"
    row = f"  0 {'2' * 32} {time.strftime(stamp, time.gmtime(first // S))} {time.strftime(stamp, time.gmtime(last // S))}\n"
    return Reply(CallKind.COMMAND, BOOTS, data=row.encode(), exit_code=0)


def journal(*lines: tuple[int, str], stderr: bytes = b"", code: int = 0) -> Reply:
    data = "".join(line(*pair) for pair in lines) or "-- No entries --\n"
    return Reply(CallKind.COMMAND, service_log.ARGV, data=data.encode(), exit_code=code, stderr=stderr)


def services(*replies: Reply) -> list[Observation]:
    return service_log.PROBE.collect(ProbeRequest(5.0), ReplayHost("n1", replies, NOW))


def events(found: Iterable[Observation]) -> list[str]:
    return [o.fact for o in found if isinstance(o.value, Event)]


def test_a_service_that_failed_and_the_window_in_which_none_other_did() -> None:
    found = services(journal((NOW - 8 * DAY, FAILED), (NOW - HOUR, FAILED)), boots(NOW - 20 * DAY, NOW - 60 * S))
    assert events(found).count("fm_failed") == 1
    none = {o.fact: o for o in found if o.status is Status.NONE_SEEN}
    assert set(none) == set(service_log.MAIN)
    assert none["fm_failed"].window == (NOW - 7 * DAY, NOW - 60 * S)


def test_silence_of_services_is_an_answer_where_a_journal_was_kept() -> None:
    found = services(journal(), boots(NOW - DAY, NOW - 60 * S))
    assert {(o.status, o.window) for o in found} == {(Status.NONE_SEEN, (NOW - DAY, NOW - 60 * S))}
    unknown = services(journal(), Reply(CallKind.COMMAND, BOOTS, Status.TIMEOUT, detail="no answer in 5 s"))
    assert {o.status for o in unknown} == {Status.FAILED}


def test_a_journal_that_may_not_be_read_reassures_nobody() -> None:
    hint = b"Hint: You are currently not seeing messages from other users and the system.\n"
    found = services(journal(stderr=hint), boots(NOW - DAY, NOW))
    assert {o.status for o in found} == {Status.DENIED}
    assert "run sudo gpudiag check" in found[0].detail
    absent = services(journal(stderr=b"No journal files were found.\n"))
    assert {o.status for o in absent} == {Status.UNSUPPORTED}
    assert {o.status for o in services(journal((NOW, FAILED), code=1))} == {Status.OK, Status.FAILED}


def fabric(*replies: Reply) -> list[Observation]:
    return fabric_manager_log.PROBE.collect(ProbeRequest(5.0), ReplayHost("n1", replies, NOW))


def entry(at: int, text: str) -> str:
    return time.strftime("[%b %d %Y %H:%M:%S] ", time.gmtime(at // S)) + f"[ERROR] [tid 7] {text}\n"


SXID = "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61"


def test_fabric_manager_s_log_is_read_in_the_zone_of_the_machine_and_its_history_left_out() -> None:
    text = entry(NOW - 300 * DAY + 9 * HOUR, SXID) + entry(NOW - HOUR + 9 * HOUR, SXID)
    log = Reply(CallKind.FILE, (fabric_manager_log.PATH,), data=text.encode())
    tokyo = Path("/usr/share/zoneinfo/Asia/Tokyo")
    if not tokyo.exists():
        pytest.skip("no time zones are installed")
    found = fabric(log, Reply(CallKind.FILE, ("/etc/localtime",), data=tokyo.read_bytes()))
    [event] = [o for o in found if isinstance(o.value, Event)]
    assert (event.fact, event.at, event.clock) == ("sxid", NOW - HOUR, Clock.REALTIME)
    none = next(o for o in found if o.status is Status.NONE_SEEN)
    assert none.window == (NOW - 7 * DAY, NOW - HOUR)
    unplaced = fabric(log, Reply(CallKind.FILE, ("/etc/localtime",), Status.DENIED))
    assert len(events(unplaced)) == 2
    assert {o.clock for o in unplaced if isinstance(o.value, Event)} == {Clock.LOCAL}
