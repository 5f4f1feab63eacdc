"""Alerts as they are passed on: which fire, what they state, and that what is over states nothing of now."""

from __future__ import annotations

import pytest

from knowledge.observation import Event, Observation, Origin, Status
from probes.base import Context
from probes.parse.prometheus_alerts import FORMAT
from tests.probes.parse.smi_case import capture


def read(text: str) -> list[Observation]:
    assert FORMAT.sniff(text) == 94
    return [o for o in FORMAT.parse(text, Context("x")) if o.status is Status.OK]


def alerts(found: list[Observation]) -> list[tuple[str, object, object, object]]:
    return [(o.subject.host, o.value.get("name"), o.value.get("state"), o.value.get("gpu")) for o in found if o.fact == "alert" and isinstance(o.value, Event)]  # fmt: skip


def stated(found: list[Observation]) -> dict[tuple[str, str, str], object]:
    """What is said of a value, of an event its code."""
    return {
        (o.subject.host, o.subject.id, o.fact): o.value.code if isinstance(o.value, Event) else o.value
        for o in found
        if o.fact != "alert"
    }


def test_a_message_of_slack_names_what_fires_and_what_is_over() -> None:
    found = read(capture("other/alerts-slack.txt"))
    assert alerts(found) == [
        ("gpu-31", "GpuMemoryHot", "firing", "5"),
        ("gpu-31", "RootDiskFull", "firing", None),
        ("gpu-31", "GpuXid", "resolved", "2"),
    ]
    assert stated(found) == {
        ("gpu-31", "index:5", "gpu.temperature.memory"): 104,
        ("gpu-31", "/", "fs.mount_point"): "/",
        ("gpu-31", "/", "fs.used.share"): 97.5,
    }
    assert {o.origin for o in found} == {Origin.TOLD}


def test_a_webhook_states_the_xid_of_what_fires_alone() -> None:
    found = read(capture("other/alerts-webhook.json"))
    assert stated(found) == {("gpu-07", "0000:3b:00.0", "xid_reported"): 95}
    assert [o.value.get("since") for o in found if o.fact == "alert" and isinstance(o.value, Event)] == ["2026-11-02 03:12", "2026-11-02 02:30"]  # fmt: skip
    assert [o.at for o in found if o.fact == "xid_reported"] == [1793589120 * 10**9]


def test_a_mail_states_a_counter_by_what_its_rule_watches() -> None:
    found = read(capture("other/alerts-mail.txt"))
    assert stated(found) == {("gpu-41", "index:4", "gpu.ecc.volatile.uncorrected.total"): 7}
    assert [state for _, _, state, _ in alerts(found)] == ["firing", "resolved"]


@pytest.mark.parametrize(
    ("text", "host", "state", "told"),
    [
        ("alertname: GpuXidError severity: critical instance: gpu-07:9400 gpu: 3 xid: 79 status: firing", "gpu-07", "firing", {79}),
        ("Alert: GpuXidError Severity: critical Node: gpu-07 GPU: 3 XID: 79", "gpu-07", "firing", {79}),
        ("[FIRING:1] GpuXid | severity: critical | node: gpu-07 | gpu: 3 | xid: 48 | summary: double bit", "gpu-07", "firing", {48}),
        ("alertname: GpuXidError severity: critical node: gpu-07 gpu: 3 xid: 79 status: resolved", "gpu-07", "resolved", set()),
    ],
)  # fmt: skip
def test_an_alert_may_stand_on_one_line(text: str, host: str, state: str, told: set[int]) -> None:
    found = read(text)
    assert [(h, s, g) for h, _, s, g in alerts(found)] == [(host, state, "3")]
    assert set(stated(found).values()) == told


def test_a_line_of_a_log_with_such_keys_is_no_alert() -> None:
    assert not FORMAT.sniff("2026-11-16 node: gpu-07 gpu: 3 status: ok value: 2 alert: none")


@pytest.mark.parametrize(
    "text",
    [
        "[RESOLVED] GpuXid gpu=2 Hostname=gpu-31 XID 79",
        "[FIRING:1] XidRate\nLabels:\n - alertname = XidRate\n - gpu = 1\nAnnotations:\n - summary = XID errors: 5 in 10m\n",
        "[FIRING:1] Hot\nLabels:\n - alertname = Hot\n - gpu = 1\nAnnotations:\n - summary = it is 3 C or is 90 C\nSource: http://p/graph?g0.expr=DCGM_FI_DEV_MEMORY_TEMP\n",
        'ALERTS{alertname="GpuXid", alertstate="pending", gpu="3", Hostname="gpu-1", xid="79"} 1',
    ],
)
def test_what_is_over_or_no_value_states_nothing(text: str) -> None:
    found = read(text)
    assert len(alerts(found)) == 1
    assert stated(found) == {}


def test_words_below_a_title_name_the_gpu_where_no_label_does() -> None:
    found = read("can we keep it?\n\n[FIRING:1] GPUXid critical\ngpu-17: GPU 3 reported XID 48\n\nthanks\n")
    assert alerts(found) == [("gpu-17", "GPUXid", "firing", "3")]
    assert stated(found) == {("gpu-17", "index:3", "xid_reported"): 48}


def test_a_message_in_chinese() -> None:
    found = read(
        "【告警】[FIRING:1] 显存温度过高\n告警名称: GpuMemHot\n实例：h20-7:9400\n级别：critical\n描述: GPU 5 显存温度 104°C\n"
    )
    assert alerts(found) == [("h20-7", "GpuMemHot", "firing", "5")]
    assert stated(found) == {("h20-7", "index:5", "gpu.temperature.memory"): 104}


def test_deliveries_behind_each_other_are_all_told() -> None:
    one = capture("other/alerts-webhook.json")
    assert alerts(read(one + one.replace("gpu-07", "gpu-09"))) == [*alerts(read(one)), ("gpu-09", "GpuXid", "firing", "0000:3b:00.0"), ("gpu-08", "GpuXid", "resolved", "1")]  # fmt: skip


def test_of_series_each_alert_is_on_its_node() -> None:
    text = (
        'ALERTS{alertname="GpuLost", alertstate="firing", gpu="3", instance="10.2.1.44:9400", Hostname="gpu-4"} 1\n'
        'ALERTS{alertname="NodeDown", alertstate="firing", instance="10.2.1.45:9100"} 1\n'
    )
    assert alerts(read(text)) == [("gpu-4", "GpuLost", "firing", "3"), ("10.2.1.45", "NodeDown", "firing", None)]


@pytest.mark.parametrize(
    "text",
    [
        "the alertmanager was restarted",
        "Re: [RESOLVED] training hangs after XID 79",
        '{"labels": {"app": "x"}}',
        "[INFO] all alerts resolved",
    ],
)
def test_what_only_speaks_of_alerts_is_none(text: str) -> None:
    assert FORMAT.sniff(text) == 0
