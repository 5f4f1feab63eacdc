"""What alerts come to in an incident: whatever the order, however often, and whatever somebody wrote into them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.incidents import pages
from assistant.incidents.alert_labels import Knows, meaning, node_of
from assistant.incidents.alert_ledger import LATE, ledger
from assistant.incidents.alert_message import PayloadError, read
from assistant.incidents.alerts import adding, begins, opening
from assistant.incidents.events import Entry, Kind, Status, closed, severity, status
from assistant.incidents.fold import Incident
from assistant.incidents.words import story
from assistant.watch.alerts import Alert as Fault
from assistant.watch.alerts import Change, Phase, Sighting, What
from assistant.watch.webhook import payload
from knowledge.text import clean
from probes.alert_labels import gpu_of, host_of
from rules.model import Severity
from tests.assistant.incidents.alert_lab import KNOWS, LOST, NOW, alert, grown, message, moment, more, notification

LABELS: dict[str, dict[str, str]] = {
    "a": {"severity": "warning"},
    "b": {"severity": "page", "Hostname": "gpu-13", "instance": "10.0.0.7:9400"},
    "c": {**LOST},
    "d": {"severity": "P9", "gpudiag_runbook": "thermal"},
}
told = st.tuples(st.sampled_from(sorted(LABELS)), st.sampled_from([0, 10, 20]), st.sampled_from(["firing", "resolved"]))
messages = st.lists(st.lists(told, min_size=1, max_size=5), min_size=1, max_size=6)
word = st.text(max_size=8) | st.sampled_from(["4", "firing", "resolved", moment(0), "{}:{}", "a"])
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | word,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=3),
    max_leaves=6,
)
_ALERT, _MESSAGE = sorted(alert("a")), sorted(message([]))
strange_alert = st.builds(
    lambda row, changed: {**alert("a"), **changed}, st.none(), st.dictionaries(st.sampled_from(_ALERT), anything)
)
own = st.dictionaries(st.sampled_from(["host", "rule", "subject", "fingerprint", "status", "at", "first_seen", "xid", "evidence"]),
                      anything | st.sampled_from(["firing", "ab", moment(0)]))  # fmt: skip
strange = st.builds(
    lambda rows, changed: {**message([]), "alerts": rows, **changed},
    st.lists(strange_alert, max_size=3), st.dictionaries(st.sampled_from(_MESSAGE), anything, max_size=2),
)  # fmt: skip


def row(one: tuple[str, int, str]) -> dict[str, Any]:
    fingerprint, minutes, state = one
    return alert(fingerprint, state, minutes, **LABELS[fingerprint])


def standing(incident: Incident) -> dict[str, Any]:
    """Everything that an incident comes to."""
    return {
        "status": incident.status, "severity": incident.severity, "hosts": set(incident.hosts), "noted": ledger(incident.events).noted,
        "findings": {(f.host, f.key, f.severity) for f in incident.findings}, "runbooks": set(incident.runbooks),
        "events": sum(e.kind == Kind.ALERT for e in incident.events),
    }  # fmt: skip


@given(messages, st.randoms(use_true_random=False))
def test_order_repetition_and_splitting_change_nothing(sent: list[list[tuple[str, int, str]]], random: Any) -> None:
    alerts = [one for part in sent for one in part]
    otherwise = alerts + random.choices(alerts, k=3)
    random.shuffle(otherwise)
    first = grown(notification(*map(row, part)) for part in sent)
    second = grown(notification(*map(row, part)) for part in _split(otherwise, random))
    assert standing(first) == standing(second)


def _split(alerts: list[Any], random: Any) -> Iterator[list[Any]]:
    while alerts:
        n = random.randint(1, 4)
        yield alerts[:n]
        alerts = alerts[n:]


@given(messages)
def test_it_is_mitigated_exactly_when_the_newest_occurrence_of_each_alert_is_over(
    sent: list[list[tuple[str, int, str]]],
) -> None:
    incident = grown(notification(*map(row, part)) for part in sent)
    alerts = [one for part in sent for one in part]
    newest = {f: max(m for g, m, _ in alerts if g == f) for f, _, _ in alerts}
    over = all((f, m, "resolved") in alerts for f, m in newest.items())
    assert (incident.status is Status.MITIGATED) is over
    assert incident.is_open
    assert bool(ledger(incident.events).firing) is not over


@given(messages)
def test_what_is_known_adds_nothing(sent: list[list[tuple[str, int, str]]]) -> None:
    incident = grown(notification(*map(row, part)) for part in sent)
    for part in sent:
        assert adding(notification(*map(row, part)), incident, KNOWS, NOW) == []


@pytest.mark.slow
@given(anything | strange | own.map(lambda row: {**row, "schema": "gpudiag/alert/1"}))
@settings(max_examples=200)
def test_any_json_is_taken_or_refused_in_words(document: Any) -> None:
    refusal = ""
    try:
        n = read(document)
    except PayloadError as error:
        refusal = error.message
    if refusal:
        assert len(refusal) < 1000
        return
    incident = more(Incident(), opening(n, KNOWS, NOW))
    assert incident.events
    assert adding(n, incident, KNOWS, NOW) == []
    for lang in ("en", "zh"):
        pages.one(incident, lang)


@given(st.dictionaries(st.text(max_size=300), st.text(max_size=3000), max_size=60))
def test_what_labels_say_is_cleaned_and_bounded(words: dict[str, str]) -> None:
    hostile = {
        **alert("a"),
        "labels": {**words, "alertname": "\x1b[2Jx\u202e" * 50},
        "annotations": {"summary": "s\x00" * 4000, **words},
    }
    entries = opening(notification(hostile), KNOWS, NOW)
    assert len(json.dumps([dict(e.data) for e in entries])) < 60_000
    for text in _texts([dict(e.data) for e in entries]):
        assert clean(text) == text
        assert len(text) <= 2000


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(name)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


# --- what people do meanwhile -------------------------------------------------------------


def test_what_people_said_counts_more() -> None:
    incident = grown([notification(alert("a", severity="warning"))])
    assert incident.severity == "warning"
    incident = more(incident, [severity("info", "a test"), status("working")], "cli")
    incident = more(incident, adding(notification(alert("b", severity="critical")), incident, KNOWS, NOW))
    assert (incident.severity, incident.status) == ("info", Status.WORKING)
    over = notification(alert("a", "resolved"), alert("b", "resolved"))
    incident = more(incident, adding(over, incident, KNOWS, NOW))
    assert incident.status is Status.MITIGATED
    incident = more(incident, adding(notification(alert("b", "firing", 30)), incident, KNOWS, NOW))
    assert incident.status is Status.WORKING, "as it was before"


def test_a_closed_one_is_begun_anew_by_what_fires_anew_alone() -> None:
    incident = grown([notification(alert("a"), alert("b"))])
    ended = more(incident, [closed("known")], "cli")
    assert not begins(notification(alert("a"), alert("b")), ended, NOW), "a repetition"
    assert not begins(notification(alert("a", "resolved")), ended, NOW)
    noticed = more(ended, adding(notification(alert("a", "resolved")), ended, KNOWS, NOW))
    assert not noticed.is_open
    assert noticed.events[-1].text("state") == "resolved"
    again = notification(alert("a", "firing", 30), alert("b"))
    assert begins(again, noticed, NOW)
    fresh = more(Incident(), opening(again, KNOWS, NOW, noticed))
    assert {f for f, _, _ in ledger(fresh.events).noted} == {"a", "b"}, "all that fires now"
    late = notification(alert("b", "resolved"), alert("c"))
    assert {f for f, _, _ in ledger(more(Incident(), opening(late, KNOWS, NOW, noticed)).events).noted} == {"b", "c"}


def test_alerts_that_were_left_out_are_no_reason_to_relax() -> None:
    incident = grown([notification(alert("a"), truncated=7)])
    assert incident.status is Status.OPEN
    told = [e.data["more"] for e in incident.events if "more" in e.data]
    assert told == [7]
    assert adding(notification(alert("a"), truncated=5), incident, KNOWS, NOW) == []
    incident = more(incident, adding(notification(alert("a", "resolved"), truncated=1), incident, KNOWS, NOW))
    assert incident.status is Status.OPEN, "one more may fire"


def test_a_message_of_ten_thousand_keeps_a_thousand_and_counts_the_rest() -> None:
    n = read(message([alert(f"f{i}") for i in range(3000)]))
    assert (len(n.alerts), n.truncated) == (1000, 2000)


def test_each_fault_is_named_by_its_place() -> None:
    rows: list[Any] = [
        alert("a"),
        {**alert("b"), "startsAt": "yesterday"},
        {**alert("c"), "status": "x", "labels": {"a": 1}},
        7,
    ]
    with pytest.raises(PayloadError) as refused:
        read({**message(rows), "groupKey": ""})
    for place in ("alerts[1].startsAt", "alerts[2].status", "alerts[2].labels", "alerts[3]", "groupKey"):
        assert place in refused.value.message


def test_two_prometheus_that_tell_beginnings_some_seconds_apart_are_one_alert() -> None:
    one, other, over = alert("a", "firing", 1), alert("a"), {**alert("a", "resolved"), "endsAt": moment(30)}
    for order in ((one, other, over), (other, one, over), (over, one, other), (one, over, other)):
        assert grown(notification(a) for a in order).status is Status.MITIGATED


def test_what_fires_long_after_it_was_said_to_be_over_fires_again_with_the_old_beginning() -> None:
    """Alertmanager heard nothing of Prometheus for minutes, and takes up the alert where it began."""
    fires, over = notification(alert("a")), notification(alert("a", "resolved"))
    incident = grown([fires, over])
    for soon in (NOW, NOW + LATE):
        assert adding(fires, incident, KNOWS, soon) == [], "a late copy"
    later = NOW + LATE + 1
    incident = more(incident, adding(fires, incident, KNOWS, later), at=later)
    assert incident.status is Status.OPEN
    assert adding(fires, incident, KNOWS, later) == []
    assert adding(over, incident, KNOWS, later) == [], "a copy of what was over before"
    assert "alert fires again: GpuLost" in story(incident, "en")[-2].text
    ends = datetime.fromtimestamp(later // 10**9 + 10, UTC).isoformat()
    end = notification({**alert("a", "resolved"), "endsAt": ends})
    incident = more(incident, adding(end, incident, KNOWS, later), at=later)
    assert incident.status is Status.MITIGATED
    ended = more(incident, [closed("")], "cli")
    assert not begins(fires, ended, later + LATE)
    assert begins(fires, ended, later + LATE + 1)
    fresh = more(Incident(), opening(fires, KNOWS, later + LATE + 1, ended))
    assert (fresh.status, ledger(fresh.events).firing) == (Status.OPEN, {"a"})


# --- gpudiag's own alerts -----------------------------------------------------------------


def test_an_alert_of_gpudiag_leads_to_its_finding_and_runbook() -> None:
    incident = grown([notification(alert("c", **LOST))])
    (found,) = incident.findings
    assert (found.key, found.rule, found.xid) == ("gpu-fell-off-bus@gpu-12/0000:3b:00.0", "gpu-fell-off-bus", 79)
    assert found.subject == "node:gpu-12/gpu:0000:3b:00.0"
    assert incident.runbooks == ("gpu-off-bus",)
    assert incident.title.en == "gpu-12 GPU 0000:3b:00.0 has fallen off the bus"
    assert "掉线" in incident.title.zh
    other = grown([notification(alert("c", **{**LOST, "rule": "up-is-down"}))])
    assert (other.findings, other.runbooks) == ((), ())


def test_gpudiag_watch_may_post_by_itself() -> None:
    second = 10**9
    seen = Sighting(
        "gpu-fell-off-bus", "gpu 0000:3b:00.0", "gpu-12", Severity.ERROR, xid=79, evidence=("NVRM: Xid 79",)
    )
    begun = Fault(seen, Phase.FIRING, Severity.ERROR, NOW - 90 * second, NOW)
    worse = replace(begun, severity=Severity.CRITICAL)
    told = [
        payload(Change(what, a, NOW + n * second), "gpu-12")
        for n, (what, a) in enumerate(
            [(What.FIRED, begun), (What.ESCALATED, worse), (What.CLEARED, worse), (What.FIRED, begun)]
        )
    ]
    sent = [read(json.loads(json.dumps(document))) for document in told]
    assert len({n.group for n in sent}) == 1
    for n, (state, grade) in enumerate(
        [("open", "error"), ("open", "critical"), ("mitigated", "critical"), ("open", "critical")], 1
    ):
        incident = grown(sent[:n])
        assert (str(incident.status), incident.severity) == (state, grade)
        assert adding(sent[n - 1], incident, KNOWS, NOW) == [], "it is sent until it is taken"
    assert [f.key for f in incident.findings] == ["gpu-fell-off-bus@gpu-12/0000:3b:00.0"]
    assert incident.title.en == "gpu-12 GPU 0000:3b:00.0 has fallen off the bus"
    for name in ("at", "status", "fingerprint"):
        with pytest.raises(PayloadError):
            read({**told[0], name: None})


@pytest.mark.parametrize(
    ("labels", "known"),
    [
        ({"severity": "Page"}, "critical"), ({"severity": "err"}, "error"), ({"level": "WARN"}, "warning"), ({"priority": "P4"}, "info"),
        ({"severity": "purple"}, ""), ({}, ""), ({"rule": "gpu-fell-off-bus"}, "critical"), ({**LOST, "severity": "warning"}, "warning"),
    ],
    ids=lambda x: str(sorted(x.items())) if isinstance(x, dict) else x,
)  # fmt: skip
def test_severities_by_their_usual_words(labels: dict[str, str], known: str) -> None:
    assert meaning(labels, {}, KNOWS).severity == known


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("gpu-12:9400", "gpu-12"), ("10.1.2.3:9100", "10.1.2.3"), ("[2001:db8::1]:9100", "2001:db8::1"), ("2001:db8::1", "2001:db8::1"),
        ("http://gpu-12:9400/metrics", "gpu-12"), ("gpu-12.example.", "gpu-12.example"), ("localhost:9100", ""), ("127.0.0.1:9100", ""),
        ("[::1]:9100", ""), ("0.0.0.0:9100", ""), ("a b", ""), ("http://[", ""), ("x" * 400, ""), ("", ""), ("\x1b[31mn1\x1b[0m", "n1"),
    ],
)  # fmt: skip
def test_a_node_without_its_port(said: str, host: str) -> None:
    assert host_of(said) == host


def test_a_label_that_names_a_known_node_comes_first() -> None:
    assert node_of({"Hostname": "exporter-x7k2", "instance": "g12:9400"}, KNOWS) == "gpu-12"
    assert node_of({"node": "n7", "instance": "10.0.0.1:9400"}, KNOWS) == "n7"
    assert node_of({"instance": "localhost:9400"}, Knows(lambda _: "here")) == "", "of which machine, nobody knows"


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"gpu": "3", "UUID": "GPU-11111111-2222-3333-4444-555555555555", "pci_bus_id": "00000000:3B:00.0"}, "0000:3b:00.0"),
        ({"gpu": "3", "UUID": "GPU-11111111-2222-3333-4444-555555555555"}, "GPU-11111111-2222-3333-4444-555555555555"),
        ({"gpu": "3"}, "index:3"), ({"gpu": "0000:1b:00.0"}, "0000:1b:00.0"), ({"gpu": "all"}, None), ({"UUID": "x"}, None), ({}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_gpu_by_its_best_name(labels: dict[str, str], name: str | None) -> None:
    found = gpu_of(labels, "n1")
    assert (found.id if found is not None else None) == name


def test_the_timeline_says_it_in_both_languages() -> None:
    incident = grown([notification(alert("a", gpu="3"), truncated=2), notification(alert("a", "resolved", gpu="3"))])
    words = {lang: "\n".join(line.text for line in story(incident, lang)) for lang in ("en", "zh")}
    assert "opened from an alert" in words["en"]
    assert "alert fires: GpuLost on gpu-12 GPU 3, since 2026-03-03 12:00:00Z: A GPU does not answer" in words["en"]
    assert "alert is over: GpuLost on gpu-12 GPU 3, 2026-03-03 12:05:00Z" in words["en"]
    assert "all its alerts are over; somebody closes it" in words["en"]
    assert "2 more alerts of the group are not in the message" in words["en"]
    for said in ("根据告警开立", "告警触发：GpuLost（gpu-12 GPU 3）", "告警恢复", "由人工关闭", "另外 2 条告警"):
        assert said in words["zh"]
    assert pages.plain(incident, "en")["origin"] == "alertmanager"


def test_what_another_writer_left_in_an_alert_harms_nobody() -> None:
    incident = grown([notification(alert("a"))])
    wild: list[dict[str, Any]] = [
        {"starts": 1.5},
        {"state": 3},
        {"fingerprint": "x", "starts": True},
        {"more": "7"},
        {"subject": "///", "starts": 10**30},
    ]
    incident = more(incident, [Entry(Kind.ALERT, d) for d in wild])
    pages.one(incident, "en")
    adding(notification(alert("b"), truncated=3), incident, KNOWS, NOW)
