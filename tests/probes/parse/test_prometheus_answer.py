from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Status
from probes.parse.prometheus_answer import FORMAT, SAMPLES
from tests.probes.parse.smi_case import CONTEXT, capture, check_cut, parse

NAME = "dcgm/range.json"


def test_every_sample_has_its_time() -> None:
    got = [o for o in parse(FORMAT, NAME) if o.fact == "gpu.utilization.core"]
    assert [(o.value, o.at) for o in got][:2] == [(100, 1_790_000_000 * 10**9), (0, 1_790_000_030 * 10**9)]
    assert got[2].status is Status.FAILED, "NaN is no number"
    assert got[0].clock is Clock.REALTIME


def test_a_series_without_a_name_is_told() -> None:
    (told,) = [o for o in parse(FORMAT, NAME) if o.fact == "exporter.malformed_lines"]
    assert told.value == 1


def test_the_newest_samples_of_the_other_exporter_at_one_moment_too() -> None:
    series = {"metric": {"__name__": "nvidia_smi_power_draw_watts", "uuid": "7d0c1f2e-0000-4000-8000-000000000001"}}
    values = [[1_790_000_000 + i, str(i)] for i in range(2 * SAMPLES)]
    for data in (
        {"resultType": "matrix", "result": [{**series, "values": values}]},
        {"resultType": "vector", "result": [{**series, "value": values[-1]}]},
    ):
        text = json.dumps({"status": "success", "data": data})
        assert FORMAT.sniff(text) == 97
        power = [o.value for o in FORMAT.parse(text, CONTEXT) if o.fact == "gpu.power.draw"]
        assert power[-1] == 2 * SAMPLES - 1
        assert len(power) == (SAMPLES if data["resultType"] == "matrix" else 1)


def test_recognition() -> None:
    assert FORMAT.sniff(capture(NAME)) == 97
    for other in (
        '{"status":"error"}',
        '{"data":{"resultType":"matrix","result":[]}}',
        "DCGM_FI_DEV_GPU_UTIL{} 1\n",
        "",
    ):
        assert FORMAT.sniff(other) == 0


@given(st.integers(0, 1400))
def test_cut_anywhere(at: int) -> None:
    check_cut(FORMAT, NAME, at)
