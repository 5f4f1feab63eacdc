"""Events completed from the catalogues: nothing lost, nothing guessed, in any order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.xid import Immediate
from knowledge.derive.xid import enrich
from knowledge.facts import vocabulary
from knowledge.observation import Clock, Event, Observation, Origin, Scalar, Scope, Source, Status, Subject, gpu, node
from tests.cases import each

GPU = gpu("0000:4b:00.0", "lab-07")
OTHER = gpu("0000:9d:00.0", "lab-07")
SWITCH = Subject(Scope.NVSWITCH, "0000:c6:00.0", node("lab-07"))
BUCKETS = {*map(str, Immediate), "XID_154_EVAL", "DRAIN_AND_RESET", "RESTART_FM"}


def line(code: int, text: str = "", number: int = 1, subject: Subject = GPU, at: int | None = None) -> Observation:
    fields: dict[str, Scalar] = {"text": text} if text else {}
    return Observation(
        "xid", subject, Event(code, fields), source=Source("kernel-log", "kern.log", number),
        at=at if at is not None else number * 10**9, clock=Clock.BOOT, excerpt=f"NVRM: Xid: {code}, {text}",
    )  # fmt: skip


def event(o: Observation) -> Event:
    assert isinstance(o.value, Event)
    return o.value


def one(code: int, text: str = "") -> Event:
    return event(enrich([line(code, text)])[0])


def only(batch: list[Observation], fact: str) -> list[Observation]:
    return [o for o in batch if o.fact == fact]


BODIES = [
    "", "Ch 00000008", "GPU has fallen off the bus.", "Ch 00000001 caused by previous Xid 149",
    "Ch 00000002 caused by previous Xid 79", "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "GPU recovery action changed from 0x0",
    "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)", "NETIR_LINK_EVT Fatal XC0 i0 Link 08",
    "NVLink: fatal error detected on link 9(0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
]  # fmt: skip
EVENTS = st.builds(
    line, st.sampled_from([13, 45, 48, 74, 79, 119, 145, 149, 150, 154, 162, 177, 999]), st.sampled_from(BODIES),
    st.integers(1, 50), st.sampled_from([GPU, OTHER]),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=12), st.randoms(use_true_random=False))
def test_a_second_pass_and_the_order_change_nothing(batch: list[Observation], chance: random.Random) -> None:
    done = enrich(batch)
    assert enrich(done) == done
    shuffled = batch[:]
    chance.shuffle(shuffled)
    assert sorted(map(repr, enrich(shuffled))) == sorted(map(repr, done))


@given(st.lists(EVENTS, max_size=12))
def test_every_line_is_kept_and_every_field_declared(batch: list[Observation]) -> None:
    done = enrich(batch)
    kinds = {"int": int, "str": str, "bool": bool, "float": float}
    kept = only(done, "xid")
    assert [(event(o).code, event(o).get("text"), o.subject, o.source) for o in kept] == [
        (event(o).code, event(o).get("text"), o.subject, o.source) for o in batch
    ]
    for o in done:
        spec = vocabulary()[o.fact]
        assert spec.accepts(o.value)
        assert spec.sentence(o)
        if isinstance(o.value, Event):
            assert o.value.get("bucket") in BUCKETS
            for name, value in o.value.fields.items():
                assert type(value) is kinds[spec.fields[name]], (name, value)


def test_the_catalogue_completes_a_line() -> None:
    e = one(119, "Timeout waiting for RPC from GSP!")
    assert {name: e.get(name) for name in ("mnemonic", "bucket", "investigate", "role", "severity", "area")} == {
        "mnemonic": "GSP_RPC_TIMEOUT", "bucket": "RESET_GPU", "investigate": "INVESTIGATE_SW", "role": "root",
        "severity": "critical", "area": "firmware",
    }  # fmt: skip
    assert e.get("has_workflow") is True
    assert e.get("decoded") is True
    assert e.get("catalogued") is True


@pytest.mark.parametrize("code", [177, 999, 0])
def test_an_unknown_code_is_not_guessed(code: int) -> None:
    e = one(code, "something new")
    assert (e.get("catalogued"), e.get("decoded"), e.get("bucket")) == (False, False, "")
    assert e.get("severity") is None
    assert e.get("mnemonic") is None


def test_a_code_without_an_action_has_none() -> None:
    e = one(162)
    assert (e.get("catalogued"), e.get("decoded"), e.get("bucket"), e.get("investigate")) == (True, True, "", "")


def test_nvlink5_lines_carry_the_decoded_action() -> None:
    e = one(
        149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    )
    assert (e.get("bucket"), e.get("investigate"), e.get("reason")) == ("IGNORE", "INVESTIGATE_SW/USER", 38)
    assert (e.get("severity"), e.get("nvlink_severity")) == ("warning", "Link Fatal")
    e = one(
        145, "RLW_RXPIPE Nonfatal XC0 i0 Link 03 (0x040864c2 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"
    )
    assert (e.get("bucket"), e.get("promoted"), e.get("severity")) == ("RESET_GPU", True, "critical")


@pytest.mark.parametrize(
    "text", ["", "NETIR_LINK_EVT Fatal XC0 i0 Link 08", "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0xffffffff 0x0 "]
)
def test_an_nvlink5_line_without_a_row_stays_undecoded(text: str) -> None:
    e = one(149, text)
    assert (e.get("decoded"), e.get("bucket")) == (False, "WORKFLOW_NVLINK5_ERR")
    assert e.get("undecodable")


def test_74_needs_its_registers() -> None:
    assert one(74, "NVLink: fatal error detected on link 6").get("decoded") is False
    e = one(74, "NVLink: fatal error detected on link 6(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)")
    assert (e.get("decoded"), e.get("bucket"), e.get("reg3_bits")) == (True, "WORKFLOW_NVLINK_ERR", "16")


def test_a_text_of_another_code_is_flagged_and_the_code_keeps_its_action() -> None:
    e = one(71, "NVLink: fatal error detected on link 6")
    assert (e.get("text_conflict"), e.get("bucket"), e.get("link")) == (74, "RESTART_APP", 6)


@each(
    ("number", "bucket", "value"),
    [
        (0, "IGNORE", "none"), (1, "RESET_GPU", "gpu_reset"), (2, "RESTART_BM", "node_reboot"),
        (3, "ASK_PLATFORM", "drain_p2p"), (4, "DRAIN_AND_RESET", "drain_and_reset"), (5, "ASK_PLATFORM", "recover_imex"),
    ],
)  # fmt: skip
def test_154_by_number(number: int, bucket: str, value: str) -> None:
    done = enrich([line(154, f"GPU recovery action changed from 0x0 (None) to 0x{number:x} (Whatever It Says)")])
    assert event(done[0]).get("bucket") == bucket
    (fact,) = only(done, "gpu.recovery_action")
    assert (fact.value, fact.subject, fact.origin, fact.source.line) == (value, GPU, Origin.DERIVED, 1)
    assert fact.excerpt.startswith("NVRM: Xid")


def test_154_without_its_number_says_nothing() -> None:
    done = enrich([line(154, "GPU recovery action changed from 0x0 (None) to")])
    assert not only(done, "gpu.recovery_action")
    assert (event(done[0]).get("decoded"), event(done[0]).get("bucket")) == (False, "XID_154")


def recovery(number: int, at: int, subject: Subject = GPU) -> Observation:
    return line(154, f"GPU recovery action changed from 0x0 (None) to 0x{number:x} (x)", at, subject)


def test_the_latest_154_of_each_gpu_counts() -> None:
    done = enrich([recovery(2, 30), recovery(4, 10), recovery(1, 20), recovery(0, 5, OTHER)])
    assert {(o.subject.id, o.value, o.source.line) for o in only(done, "gpu.recovery_action")} == {
        (GPU.id, "node_reboot", 30), (OTHER.id, "none", 5),
    }  # fmt: skip


def test_measured_recovery_actions_are_left_alone() -> None:
    measured = Observation("gpu.recovery_action", GPU, "none", source=Source("nvidia-smi-q"))
    done = enrich([measured, recovery(1, 3)])
    assert measured in done
    assert len(only(done, "gpu.recovery_action")) == 2


def test_a_named_cause_without_a_line_is_implied_once() -> None:
    batch = [
        line(45, "Ch 00000001 caused by previous Xid 149", 7),
        line(45, "Ch 00000002 caused by previous Xid 149", 5),
        line(45, "Ch 00000003 caused by previous Xid 145", 6, OTHER),
    ]
    implied = {o.subject.id: o for o in only(enrich(batch), "xid_implied")}
    assert {g: event(o).code for g, o in implied.items()} == {GPU.id: 149, OTHER.id: 145}
    first = implied[GPU.id]
    assert (first.source.line, first.at, first.origin) == (5, 5 * 10**9, Origin.DERIVED)
    assert (event(first).get("lines"), event(first).get("named_by"), event(first).get("decoded")) == (2, 45, False)


def test_a_cause_that_has_its_line_is_not_implied() -> None:
    batch = [line(45, "Ch 00000001 caused by previous Xid 119"), line(119, "Timeout waiting for RPC from GSP!")]
    assert not only(enrich(batch), "xid_implied")
    assert only(enrich([batch[0], line(119, subject=OTHER)]), "xid_implied")  # the other GPU's line does not count


def switch_event(code: int, fields: dict[str, Scalar]) -> Event:
    return event(enrich([Observation("sxid", SWITCH, Event(code, fields))])[0])


def test_switch_events() -> None:
    e = switch_event(20034, {"severity_word": "Fatal", "link": 30, "text": "LTSSM Fault Up", "reporter": "kernel"})
    assert (e.get("bucket"), e.get("severity"), e.get("area"), e.get("link")) == ("RESET_GPU", "critical", "fabric", 30)
    e = switch_event(12028, {"text": "detected NVSwitch non-fatal error 12028 on fid 0 ... physical id 3 port 61"})
    assert (e.get("bucket"), e.get("link"), e.get("fatal")) == ("MONITOR", 61, False)
    e = switch_event(11001, {"text": "Severity 0 Engine instance 42 Sub-engine instance 00"})
    assert (e.get("bucket"), e.get("fatal"), e.get("engine_instance")) == ("", None, 42)
    e = switch_event(99999, {"severity_word": "Fatal", "text": "?"})
    assert (e.get("catalogued"), e.get("bucket"), e.get("severity")) == (False, "", "critical")
    for found in (e, switch_event(23001, {})):
        assert vocabulary()["sxid"].accepts(found)


def test_a_link_has_the_port_that_failed_in_the_same_moment_at_its_other_end() -> None:
    def ends(*ports: int, at: int) -> tuple[Scalar, Scalar]:
        failed = [
            Observation(
                "sxid", SWITCH, Event(20034, {"text": f"Fatal, Link {n} LTSSM Fault Up"}), at=at, clock=Clock.BOOT
            )
            for n in ports
        ]
        o = enrich([line(74, BODIES[-1], at=10**9), *failed])[0]
        return event(o).get("switch"), event(o).get("switch_link")

    assert ends(30, at=2 * 10**9) == (SWITCH.id, 30)
    assert ends(30, at=99 * 10**9) == ends(30, 31, at=10**9) == (None, None)


def test_what_is_not_an_event_passes_through() -> None:
    none = Observation("xid", GPU, None, Status.NONE_SEEN, detail="whole log read")
    other = Observation("gpu.uuid", GPU, "GPU-1")
    assert enrich([none, other]) == [none, other]
