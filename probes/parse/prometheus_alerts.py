"""Alerts of Prometheus as they are passed on: Alertmanager's webhook and API as JSON, its texts in Slack and mail, the series ALERTS.

    [FIRING:2] GpuMemoryTempHigh (prod)
    Labels:
     - alertname = GpuMemoryTempHigh
     - gpu = 6
    Annotations:
     - description = HBM temperature is 103C
    Source: http://prometheus:9090/graph?g0.expr=DCGM_FI_DEV_MEMORY_TEMP+%3E+95

Sources: the default templates of Alertmanager (template/default.tmpl, email.tmpl), its webhook (version 4) and its API v2, and the API of
Prometheus (/api/v1/alerts). What an alert that fires says of a value in the words of its rule becomes that fact, as told; what is
resolved says nothing of now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import unquote_plus

from knowledge.metrics import metrics
from knowledge.observation import Clock, Event, Observation, Origin, Scalar, Scope, Status, Subject, Value, gpu, node
from knowledge.record import dataclass
from knowledge.text import clean, digits, excerpt
from probes.alert_labels import gpu_of, hosts_of, severity_of, summary_of
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse._json import DECODER
from probes.parse._logtime import parse_iso

NAME, REVISION = "prometheus-alerts", 2
EVENT = "alert"
PROVIDES = (EVENT, "xid_reported", "fs.used.share", "fs.mount_point", "gpu.temperature.memory", "gpu.xid.last", "gpu.ecc.volatile.uncorrected.total")  # fmt: skip
MOST = 1000  # alerts that are read

# [FIRING:2] GpuMemoryTempHigh (prod us-east)      [RESOLVED] GpuXidError gpu=2 Hostname=h200-44      [FIRING:1, RESOLVED:1] a
_TITLE = re.compile(r"[^\[]{0,40}\[(FIRING|RESOLVED)(?::\d{1,6})?(?:, ?RESOLVED(?::\d{1,6})?)?\]\s{0,8}(.{0,600})")
# People write [RESOLVED] above mails of their own: labels tell an alert, or how many fire.
_SURE = re.compile(
    r"[^\[]{0,40}\[(?:FIRING:\d{1,6}|RESOLVED:\d{1,6}|RESOLVED(?=\].{0,200}(?:\w=|\([\w ./:-]{1,200}\))))"
)
# Alerts Firing:      [2] Firing      **Resolved**
_PART = re.compile(
    r"[\W_]{0,8}(?:Alerts? |\[\d{1,6}\] ?)?(Firing|Resolved)(?: Alerts?)?[\W_]{0,8}(?:\(\d{1,6}\))?[\W_]{0,4}",
    re.IGNORECASE,
)
#  - alertname = GpuMemoryTempHigh      • *alertname:* `GpuDown`      gpu = 3
_PAIR = re.compile(
    r"[\s\-*•>|]{0,12}([^\W\d][\w.]{0,80})(?: = |=|：|:\*{0,2} |\*{1,2}: ?|:\*{1,2} ?)[`*]{0,3}(.{0,2000}?)[`*]{0,3}\s{0,8}"
)
_HEADING = re.compile(
    r"[\s*_>]{0,8}(Labels|Annotations|Details|Source|Graph|Silence)[*_]{0,2}:[*_]{0,2}\s{0,8}(\S{0,2000})[\s>]{0,8}"
)
_INLINE = re.compile(r"([A-Za-z_]\w{0,60})=\"?([^\s\"(),]{1,200})")
# ALERTS{alertname="NodeDown", alertstate="firing", instance="10.2.1.45:9100"} 1
_SERIES = re.compile(r"\s{0,8}ALERTS\{(.{1,4000}?)\}(?: =>)?\s{1,8}1(?:\.0)?\b.{0,60}")
_LABEL = re.compile(r"([A-Za-z_]\w{0,80})=\"((?:[^\"\\]|\\.){0,1000})\"")
# 告警名称: GpuDown      实例：h20-7:9400
_CHINESE = {
    "告警名称": "alertname", "告警名": "alertname", "告警": "alertname", "实例": "instance", "告警实例": "instance", "节点": "node", "主机": "host", "主机名": "hostname",
    "级别": "severity", "告警级别": "severity", "严重程度": "severity", "等级": "severity", "描述": "description", "告警描述": "description", "详情": "description",
    "告警详情": "description", "概要": "summary", "摘要": "summary", "主题": "summary", "告警主题": "summary", "挂载点": "mountpoint",
}  # fmt: skip
# Alert: GpuEccError Severity: critical Node: gpu-12 GPU: 5      alertname=NodeDown severity=page instance=gpu-7:9100: all on one line
_SPREAD = re.compile(
    r"(?i)(?<![\w.:=])[*`_]{0,3}(alertname|alert|severity|priority|instance|node|host|hostname|gpu|uuid|pci_bus_id|xid|err_code|status|state|summary|"
    r"description|message|value|started|startsat|since|mountpoint|device|job|namespace|pod|cluster|labels|annotations)[*`_]{0,3}\s{0,2}[:=](?=[\s*`])[*`_ ]{0,4}"
)
_LEAST = 3  # such keys on one line
_ANNOTATIONS = frozenset({"summary", "description", "message", "title"})
# h100-7: GPU 3 reported XID 48      on h200-44      node gpu-3
_ON_NODE = re.compile(
    r"^([A-Za-z](?=[\w.-]{0,60}\d)[\w.-]{1,60}): |\b(?:on|at|host|node) (?!GPU)([A-Za-z](?=[\w.-]{0,60}\d)[\w.-]{1,60}[\w])\b"
)
_OF_GPU = re.compile(r"\bGPU[ #]{0,2}(\d{1,2})(?!\d|\.\d|[A-Za-z])")
_STATES = {"firing": "firing", "active": "firing", "suppressed": "firing", "resolved": "resolved", "pending": "pending", "inactive": "resolved"}  # fmt: skip

_JSON = re.compile(r"\s{0,80}(?P<opens>\[\s{0,80}\{|\{)")
_METRIC = re.compile(r"\b(DCGM_FI_\w{1,80})\b")
_XID = re.compile(r"\bXID(?: error)?(?: code)?[ :#=]{0,3}(\d{1,3})\b", re.IGNORECASE)
# HBM temperature on h200-44 GPU 6 is 103C      memory temp 97 °C
_HOT = re.compile(
    r"(?:\b(?:HBM|memory|VRAM)[ -]temp(?:erature)?\b|(?:显存|HBM) ?温度)[^.;(]{0,120}?(?<!\d)(\d{2,3})(?:\.\d{1,3})? ?(?:°|deg(?:rees)? ?)?C\b",
    re.IGNORECASE,
)
# has only 1.12% available space left      is 97 % full
_LEFT = re.compile(
    r"\b(\d{1,3}(?:\.\d{1,6})?) ?% (?:of (?:the )?space )?(?:available|free|left|remaining)\b", re.IGNORECASE
)
_USED = re.compile(r"\b(\d{1,3}(?:\.\d{1,6})?) ?% (?:full|used)\b", re.IGNORECASE)
# VALUE = 103      current value: 3      is 103: where several numbers stand so, none is known to be it
_VALUES = tuple(
    re.compile(
        rf"\b(?:{word})\b[ :=]{{1,4}}(\d{{1,9}}(?:\.\d{{1,6}})?)\b(?!\s?(?:m|min|minutes?|h|hours?|s|seconds?)\b)",
        re.IGNORECASE,
    )
    for word in ("value", "is|at")
)


@dataclass(slots=True)
class _Alert:
    """One alert as it stands, with the line that it begins at."""

    state: str
    line: Line
    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)  # annotations
    expr: str = ""  # what its rule watches
    since: str = ""  # when it began to be what `state` says
    value: float | None = None
    title: bool = False  # it is one line above the alerts of a group, or all that was passed on


def sniff(head: str) -> int:
    """94 for a message about alerts, or for the series of alerts."""
    if _JSON.match(head):
        parts = '"labels"' in head and '"alertname"' in head
        return 94 if parts and any(sign in head for sign in ('"startsAt"', '"activeAt"')) else 0
    lines = [line.text[:4000] for line in lines_of(head)[:200]]
    if any(_SERIES.fullmatch(text) or _SURE.match(text) for text in lines):
        return 94
    if any(len(_apart(Line(0, text))) > 1 for text in lines[:20]):
        return 94
    return 94 if re.search(r"(?m)^[\s\-*•>]{0,12}alertname(?: = |:\*? )", head) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Each alert, and what those that fire say of a value."""
    alerts = list(_of_json(text) if _JSON.match(text) else _of_text(text))[:MOST]
    told = [o for alert in alerts for o in _told(alert, context)]
    hosts = dict.fromkeys(o.subject.host for o in told)
    source, why = context.at(NAME, REVISION), "no other alert in this message"
    return [*told, *(Observation(EVENT, node(host), None, Status.NONE_SEEN, source, detail=why) for host in hosts)]


def _told(alert: _Alert, context: Context) -> Iterator[Observation]:
    labels = alert.labels
    words = " ".join(alert.words.get(n, "")[:1000] for n in ("summary", "description", "message")).strip()
    host = next(iter(hosts_of(labels)), "") or _one(_ON_NODE, words) or context.host
    number = _one(_OF_GPU, words)
    device = gpu_of(labels, host) or (gpu(f"index:{number}", host) if number else None)
    name = excerpt(labels.get("alertname", "") or alert.name, 100)
    if not name:
        return
    said = summary_of(alert.words)
    source = context.at(NAME, REVISION, alert.line.number)
    since = parse_iso(alert.since)
    at, clock = (since.value, since.clock) if since is not None else (None, Clock.NONE)
    shown = said or excerpt(clean(alert.line.text.strip()), 300)

    def seen(fact: str, on: Subject, value: Value) -> Observation:
        return Observation(fact, on, value, Status.OK, source, at, clock, excerpt=shown, origin=Origin.TOLD)

    fields: dict[str, Scalar] = {"name": name, "state": alert.state, "severity": severity_of(labels) or "warning"}
    if alert.state != "firing":
        fields["severity"] = "info"
    if device is not None:
        fields["gpu"] = device.id.removeprefix("index:")
    if since is not None:
        fields["since"] = excerpt(clean(alert.since[:16].replace("T", " ")), 20)
    if said:
        fields["summary"] = excerpt(said, 160).rstrip(". ")
    yield seen(EVENT, node(host), Event(None, fields))
    if alert.state == "firing":
        for fact, on, value in _stated(alert, name, words, device, host):
            yield seen(fact, on, value)


def _one(pattern: re.Pattern[str], words: str) -> str:
    """What the words name where the labels do not; empty where they name none or several."""
    found = {next(filter(None, m.groups())) for m in pattern.finditer(words)}
    return found.pop() if len(found) == 1 else ""


def _stated(
    alert: _Alert, name: str, words: str, device: Subject | None, host: str
) -> Iterator[tuple[str, Subject, Value]]:
    """The facts of the vocabulary that an alert states: by what its rule watches, else by its words."""
    found = {}
    if device is not None:
        found = {fact: value for fact, value in _measured(alert, words) if fact in PROVIDES}
        if (hot := _HOT.search(words)) and "gpu.temperature.memory" not in found:
            found["gpu.temperature.memory"] = int(hot[1])
        named = _XID.search(f"{name} {words}")
        label = alert.labels.get("xid") or alert.labels.get("err_code") or (named[1] if named else "")
        code = digits(label, 4)
        if code and "DCGM_FI_DEV_XID_ERRORS" in alert.expr:  # a gauge that keeps the last code
            found["gpu.xid.last"] = code
        elif code:
            fields: dict[str, Scalar] = {"reporter": f"the alert {name}", "text": excerpt(words.strip() or name, 200)}
            yield "xid_reported", device, Event(code, fields)
        yield from ((fact, device, value) for fact, value in found.items())
    mount = alert.labels.get("mountpoint", "")
    if mount.startswith("/") and host:
        left, used = _LEFT.search(words), _USED.search(words)
        share = 100 - float(left[1]) if left else float(used[1]) if used else None
        if share is not None and 0 <= share <= 100:
            place = Subject(Scope.OBJECT, mount[:200], node(host))
            yield "fs.mount_point", place, mount[:200]
            yield "fs.used.share", place, round(share, 2)


def _measured(alert: _Alert, words: str) -> Iterator[tuple[str, Any]]:
    """The value of the one metric of DCGM that a rule watches."""
    names = set(_METRIC.findall(unquote_plus(alert.expr)[:4000]))
    match = metrics().find("dcgm", names.pop()) if len(names) == 1 else None
    told = next((found for pattern in _VALUES if (found := set(pattern.findall(words)))), set())
    number = alert.value if alert.value is not None else float(told.pop()) if len(told) == 1 else None
    if match is not None and match.lane is None and not match.metric.bits and number is not None:
        yield match.metric.fact, match.convert(number, match.metric.fact, "")


# --- JSON ---------------------------------------------------------------------------------


def _of_json(text: str) -> Iterator[_Alert]:
    """Alerts of the webhook, of Alertmanager's API and of Prometheus': one document, or several and a text behind each other."""
    start = told = 0
    while told < MOST and (found := _JSON.match(text, start)):
        begin = found.start("opens")
        try:
            document, start = DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return
        for alert in _of_document(document, text, begin):
            told += 1
            yield alert
    yield from _of_text("\n" * text.count("\n", 0, start) + text[start:])


def _of_document(document: Any, text: str, begin: int) -> Iterator[_Alert]:
    if isinstance(document, dict):
        inner = document.get("data")
        document = document.get("alerts") or (inner.get("alerts") if isinstance(inner, dict) else inner)
    for row in document if isinstance(document, list) else []:
        if not isinstance(row, dict):
            continue
        labels = _texts(row.get("labels"))
        status = row.get("status", row.get("state", ""))
        state = _STATES.get(str(status.get("state") if isinstance(status, dict) else status), "firing")
        since = row.get("startsAt", row.get("activeAt"))
        if state == "resolved" and not str(row.get("endsAt", "0001")).startswith("0001"):  # Go's zero: not yet
            since = row["endsAt"]
        value = row.get("value")
        yield _Alert(
            state,
            Line(_line_of(text, labels.get("alertname", ""), begin), " ".join(f"{k}={v}" for k, v in labels.items())),
            "",
            labels,
            _texts(row.get("annotations")),
            str(row.get("generatorURL", ""))[:4000],
            since if isinstance(since, str) else "",
            _number(value),
        )


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, str) and len(value) < 40 else None
    except ValueError:
        return None


def _line_of(text: str, word: str, begin: int) -> int:
    at = text.find(f'"{word}"', begin) if word else -1
    return text.count("\n", 0, at if at >= 0 else begin) + 1


def _texts(value: object) -> dict[str, str]:
    return {str(k): v for k, v in value.items() if isinstance(v, str)} if isinstance(value, Mapping) else {}


# --- text ---------------------------------------------------------------------------------


def _of_text(text: str) -> Iterator[_Alert]:
    """Alerts of a message; of a title that is followed by its alerts these."""
    alerts: list[_Alert] = []
    state, part = "firing", ""
    under = -1  # the last line of a title and of the words right below it
    for line in (row for whole in lines_of(text) for row in _apart(whole)):
        told = clean(line.text[:4000]).rstrip()
        under += under == line.number - 1 and bool(told.strip())
        if m := _SERIES.fullmatch(told):
            labels = dict(_LABEL.findall(m[1]))
            alerts.append(_Alert(_STATES.get(labels.pop("alertstate", ""), "firing"), line, "", labels))
        elif m := _TITLE.fullmatch(told):
            state, part, under = m[1].lower(), "", line.number
            alerts.append(_Alert(state, line, _first(m[2]), dict(_INLINE.findall(m[2])), title=True))
        elif m := _PART.fullmatch(told):
            state, part = m[1].lower(), ""
        elif m := _HEADING.fullmatch(told):
            part = m[1].lower()
            if part in ("labels", "details"):
                _begin(alerts, state, line, part)
            elif part in ("source", "graph") and alerts:
                alerts[-1].expr = m[2]
        elif (m := _PAIR.fullmatch(told)) and (
            alerts or _CHINESE.get(m[1]) == "alertname" or m[1].lower() in ("alert", "alertname")
        ):
            _pair(alerts, state, part, m[1], m[2].strip(), line)
        elif line.number == under and told.strip():
            words = alerts[-1].words
            words["description"] = f"{words.get('description', '')} {told.strip()}".lstrip()
    for alert, after in zip(alerts, [*alerts[1:], None], strict=False):
        if not alert.title or after is None or after.title:
            yield alert


def _apart(line: Line) -> list[Line]:
    """The line; of one that has an alert with all its labels on it, a line for each label."""
    text = clean(line.text[:4000])
    if text.count(":") + text.count("=") < _LEAST:
        return [line]
    keys = list(_SPREAD.finditer(text))
    names = {m[1].lower() for m in keys}
    ahead = text[: keys[0].start()].strip(" -|,;") if keys else ""
    title = _SURE.match(text) is not None
    if len(names) < _LEAST or not (title or (names & {"alert", "alertname"} and not ahead)):
        return [line]
    values = [
        text[m.end() : after].strip(" \t-|,;*`")
        for m, after in zip(keys, [*(m.start() for m in keys[1:]), len(text)], strict=True)
    ]
    rows = [(m[1].lower(), value) for m, value in zip(keys, values, strict=True)]
    state = next((_STATES[v.lower()] for key, v in rows if key in ("status", "state") and v.lower() in _STATES), "")
    called = {"alert": "alertname", "hostname": "host"}
    out = [line._replace(text=ahead)] if title else [line._replace(text=state or "firing")]
    return [*out, *(line._replace(text=f"{called.get(key, key)} = {value}") for key, value in rows if value)]


def _first(words: str) -> str:
    found = re.search(r"[A-Za-z][\w.-]{1,100}", words)
    return found[0] if found else ""


def _begin(alerts: list[_Alert], state: str, line: Line, part: str) -> None:
    """A new alert; details of one whose words stand above them are no new one."""
    if part == "labels" or not alerts or "alertname" in alerts[-1].labels:
        alerts.append(_Alert(state, line))


def _pair(alerts: list[_Alert], state: str, part: str, key: str, value: str, line: Line) -> None:
    key = _CHINESE.get(key, key)
    if key.lower() == "alert":
        if not alerts or alerts[-1].words:
            alerts.append(_Alert(state, line))
        alerts[-1].words["summary"] = value.replace("`", "").replace("*", "")
        return
    if not alerts or (key == "alertname" and "alertname" in alerts[-1].labels):
        alerts.append(_Alert(state, line))
    if part == "annotations" or key.lower() in _ANNOTATIONS:
        alerts[-1].words[key.lower()] = value
    elif part in ("labels", "details", ""):
        alerts[-1].labels.setdefault(key, value)


FORMAT = DocumentFormat(NAME, "alerts of Prometheus and Alertmanager", REVISION, PROVIDES, sniff, parse)
