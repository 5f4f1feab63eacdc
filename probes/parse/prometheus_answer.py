"""What Prometheus answers to ``/api/v1/query_range`` and ``/api/v1/query``: series of the GPU exporters, over time.

A series keeps its newest `SAMPLES`. One without a name (``rate()``, ``avg by``) says nothing of a counter: it is counted as not
understood. Format: prometheus.io/docs/prometheus/latest/querying/api (resultType matrix and vector).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from knowledge.observation import Observation, Status, node
from knowledge.text import excerpt
from probes.base import Context, DocumentFormat, Line
from probes.parse import amd_exporter_scrape, dcgm_scrape, gpu_exporter_scrape
from probes.parse._json import loaded
from probes.parse._prometheus import MAX_LABELS, Exposition, Sample, number_of
from probes.parse._scrape_facts import AMD_EXPORTER_FACTS, DCGM_FACTS, GPU_EXPORTER_FACTS

NAME, REVISION = "prometheus-answer", 1
SAMPLES = 600
SERIES = 20_000
# {"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0"},"values":[[1790000000,"99"],...
_KIND = re.compile(r'"resultType"\s{0,8}:\s{0,8}"(?:matrix|vector)"')
_NAMED = re.compile(
    r'"__name__"\s{0,8}:\s{0,8}"(?:DCGM_(?:FI|EXP)_|dcgm_|nvidia_smi_|(?:amd_)?gpu_(?:gfx_activity|package_power|health|junction_temperature|power_usage|used_vram|ecc_))'
)


def sniff(head: str) -> int:
    """97 when it answers with series of a GPU exporter."""
    return 97 if _KIND.search(head) and _NAMED.search(head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Every sample with its time; the fact that it is cut where it does not end."""
    try:
        document = loaded(text)
    except (ValueError, RecursionError):
        document = None
    data = document.get("data") if isinstance(document, dict) else None
    series = data.get("result") if isinstance(data, dict) else None
    if not isinstance(series, list):
        if not sniff(text[:65536]):
            return []
        why = "the JSON document is cut or not well formed"
        source = context.at(NAME, REVISION)
        return [Observation("exporter.malformed_lines", node(context.host), None, Status.FAILED, source, detail=why)]
    page = Exposition()
    for one in series[:SERIES]:
        if samples := list(_samples(one)):
            page.samples += samples
        else:
            page.malformed.append(Line(1, excerpt(str(one), 200)))
    told = []
    names = {s.name.lower()[:4] for s in page.samples}
    if names & {"dcgm"}:
        told += dcgm_scrape.observed(page, context)
    if names & {"nvid"}:
        told += gpu_exporter_scrape.observed(page, context)
    if names & {"gpu_", "amd_", "pcie"}:
        told += amd_exporter_scrape.observed(page, context)
    return told


def _samples(one: Any) -> Iterator[Sample]:
    """The samples of one series, oldest first; none where it has no name or no values."""
    metric = one.get("metric") if isinstance(one, dict) else None
    if not isinstance(metric, dict) or len(metric) > MAX_LABELS or not isinstance(metric.get("__name__"), str):
        return
    values = one["values"][-SAMPLES:] if isinstance(one.get("values"), list) else [one.get("value")]
    labels = {k: v for k, v in metric.items() if k != "__name__" and isinstance(v, str)}
    name = metric["__name__"]
    shown = ",".join(f'{k}="{v}"' for k, v in labels.items())
    for pair in values:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
            continue
        stamp, value = pair[0], number_of(pair[1])
        if value is None or not isinstance(stamp, int | float) or isinstance(stamp, bool) or not math.isfinite(stamp):
            continue
        if abs(stamp) < 1e10:
            yield Sample(name, labels, value, 1, f"{name}{{{shown}}} {pair[1]} @{stamp}", round(stamp * 10**9))


FORMAT = DocumentFormat(
    NAME,
    "answer of Prometheus (query or query_range)",
    REVISION,
    tuple(dict.fromkeys((*DCGM_FACTS, *GPU_EXPORTER_FACTS, *AMD_EXPORTER_FACTS))),
    sniff,
    parse,
)
