"""Events of Kubernetes, of ``kubectl get events`` and of the table that ends ``kubectl describe``: what each of them tells of its object.

Events:
  Type     Reason            Age                From               Message
  ----     ------            ----               ----               -------
  Warning  FailedScheduling  5m (x3 over 10m)   default-scheduler  0/12 nodes are available: 4 Insufficient nvidia.com/gpu, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from knowledge.identity import normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scalar, Scope, Subject, Value, gpu, node
from knowledge.text import clean, excerpt
from probes.base import Line
from probes.parse.container_runtime import EVENT as REFUSED
from probes.parse.container_runtime import refused

Told = Callable[
    [str, Subject, Value, Line], Observation
]  # fact, subject, value, line -> what a format's own source says
PROVIDES = ("pod_failing", "pod_unplaced", "pod_refused", "kubernetes_warning", REFUSED, "kubernetes_condition", "node.kubernetes.ready")  # fmt: skip
UNNAMED = "unknown:?"  # a pod of which the table's own title was not given

_HEAD = lazy(r"\s{0,12}Type\s{1,20}Reason\s{1,80}Age\s{1,40}From\s{1,80}Message\s{0,20}")
_ROW = lazy(
    r"\s{0,12}(?P<type>Normal|Warning)\s{1,20}(?P<reason>[A-Z]\w{1,80})\s{1,80}(?P<age>(?:\d{1,6}[dhms]){1,4}|<\w{1,20}>)(?: \(x\d{1,9} over [\w<>]{1,20}\))?\s{1,40}"
    r"(?P<source>[\w./-]{1,253}(?:, [\w.-]{1,253})?)\s{1,80}(?P<message>\S.{0,1900})"
)
_PROMPT = lazy(r"\s{0,8}(?:\S{1,80})?[$#>] |```")
# XID 79 on GPU 0000:c3:00.0        Xid error 48 on GPU-5a1c2be0-8c7e-...        NVRM: Xid (PCI:0000:9b:00): 94
_XID = lazy(r"(?i)\bxid(?: errors?| code)? ?(?:\(PCI:[\da-f:.]{7,16}\))?[ :=#]{0,3}(\d{1,3})\b")
_CARD = lazy(
    r"(?i)\b([\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}(?:\.[0-7])?)\b|\b(GPU-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\b|\bGPU[ #:]{1,2}(\d{1,2})\b(?!:)"
)
LONGEST = 4000  # characters of an event that goes on over lines
_AGE = lazy(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
SHORT = lazy(r"Insufficient ((?:nvidia|amd|habana|gpu\.intel)\.(?:com|ai)/[\w.-]{1,40})")
# Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected
REFUSED_DEVICES = lazy(r"\b([\w.-]{1,60}/[\w.-]{1,60})\. Requested: (\d{1,6}), Available: (\d{1,6})")
INFRASTRUCTURE = lazy(
    r"nvidia-|gpu-operator|gpu-feature-discovery|dcgm|amd-gpu|amdgpu-|rocm-|k8s-device-plugin|network-operator|mofed-|node-problem-detector"
)
FAILING = frozenset(
    {"BackOff", "Failed", "FailedCreatePodSandBox", "InspectFailed", "ErrImageNeverPull", "FailedPostStartHook"}
)
PASSED = frozenset({"Rebooted", "InvalidDiskCapacity"})  # a boot that is over; a moment of each start of the kubelet
READY = {"NodeReady": True, "NodeNotReady": False}
# Overcome once the pod was placed, or one of its containers was started, later than that.
_UNTIL_PLACED = frozenset({"FailedScheduling"})
_UNTIL_STARTED = frozenset(
    {"FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "NetworkNotReady", "InspectFailed", "Failed"}
)
# Normal   NodeHasDiskPressure   5m   kubelet   Node gpu-07 status is now: NodeHasDiskPressure
_OF_NODE = lazy(r"\bNode ([\w.-]{1,253}) status is now: ")
_PRESSED = {"NodeHasDiskPressure": "DiskPressure", "NodeHasInsufficientMemory": "MemoryPressure", "NodeHasInsufficientPID": "PIDPressure"}  # fmt: skip
_RELIEVED = {"NodeHasNoDiskPressure": "DiskPressure", "NodeHasSufficientMemory": "MemoryPressure", "NodeHasSufficientPID": "PIDPressure"}  # fmt: skip
# Attempting to reclaim ephemeral-storage
_RECLAIMS = lazy(r"Attempting to reclaim (\S{1,60})")
# Successfully assigned ml/llama-0 to gpu-07        Back-off restarting failed container main in pod llama-0_ml(88f1)
_POD = lazy(r"Successfully assigned ([\w./-]{1,320}) to ([\w.-]{1,253})")
_IN_POD = lazy(r"\bin pod ([\w.-]{1,253})_([\w-]{1,63})\(")


class Row(NamedTuple):
    """One event of a table that ends a description."""

    type: str
    reason: str
    age: int  # s since it was last seen
    message: str
    line: Line


def xid_of_condition(condition: str, message: str, host: str) -> tuple[Subject, Event] | None:
    """The XID that the message of a node's condition names, and its GPU; none where either is not named, or several are."""
    codes = {int(m[1]) for m in _XID.finditer(message)}
    cards = {m[1] or m[2] or f"index:{int(m[3])}" for m in _CARD.finditer(message)}
    if len(codes) != 1 or len(cards) != 1:
        return None
    fields: dict[str, Scalar] = {"reporter": f"the condition {condition}", "text": excerpt(message, 200)}
    card = cards.pop()
    return gpu(normalise_pci(card) if ":" in card and not card.startswith("index:") else card, host), Event(
        codes.pop(), fields
    )


def goes_on(text: str) -> bool:
    """Whether a line below an event that is none itself may belong to its message, which holds the line ends of what it quotes."""
    return bool(text.strip()) and not _PROMPT.match(text) and not _HEAD.fullmatch(text[:400])


def longer(row: Line, more: Line) -> Line:
    """A row with a line that its message goes on with."""
    return Line(row.number, f"{row.text.rstrip()} {more.text.strip()}"[:LONGEST])


def rows(lines: Sequence[Line]) -> list[Row]:
    """The events of a table; also of one whose heading was not copied."""
    found: list[Row] = []
    ended = True
    for line in lines:
        if m := _ROW.fullmatch(line.text[:2400].rstrip()):
            found.append(Row(m["type"], m["reason"], seconds(m["age"]), clean(m["message"]), line))
            ended = False
        elif ended or not goes_on(line.text):
            ended = True
        else:
            last = found[-1]
            message = clean(f"{last.message} {line.text.strip()}"[:LONGEST])
            found[-1] = last._replace(message=message, line=longer(last.line, line))
    return found


def headed(text: str) -> bool:
    """Whether a line is the heading of such a table."""
    return _HEAD.fullmatch(text[:400]) is not None


def seconds(age: str) -> int:
    """How long ago, of ``2m11s`` or ``3d``; 0 for anything else."""
    found = _AGE.fullmatch(age)
    parts = [int(part or 0) for part in found.groups()] if found else [0, 0, 0, 0]
    return ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3]


def pod_of(found: Sequence[Row]) -> str:
    """The pod that the messages name; empty where none does."""
    for row in found:
        if m := _POD.search(row.message):
            return m[1]
        if m := _IN_POD.search(row.message):
            return f"{m[2]}/{m[1]}"
    return ""


def described(found: Sequence[Row], kind: str, name: str, host: str, told: Told) -> list[Observation]:
    """What a table of events tells of the pod or node that it belongs to; where its title was not given, of what the messages name."""
    out: list[Observation] = []
    name = name or (pod_of(found) if kind == "pod" else "")
    placed = [m[2] for row in found if (m := _POD.search(row.message))]
    host = host or (placed[-1] if placed else "")
    for row in found:
        if row.reason in READY or row.reason in _PRESSED:
            out += _state(row, found, name if kind == "node" else "", host, told)
        elif row.type == "Warning" and row.reason not in PASSED and not overcome(row, found):
            of_node = kind == "node" or row.reason in ("EvictionThresholdMet", "SystemOOM")
            whose = (name or UNNAMED) if kind == "pod" else name
            out.append(warning(row.reason, row.message, "node" if of_node else kind, whose if not of_node or kind == "node" else "", host, row.line, told))  # fmt: skip
    return _once(out)


def overcome(row: Row, found: Sequence[Row]) -> bool:
    """Whether a later event among `found`, those of one object, says that what `row` warns of is over."""
    after = {"Scheduled"} if row.reason in _UNTIL_PLACED else {"Started"} if row.reason in _UNTIL_STARTED else set()
    return any(r.type == "Normal" and r.reason in after and r.age <= row.age for r in found)


def _state(row: Row, found: Sequence[Row], name: str, host: str, told: Told) -> list[Observation]:
    """Ready or not, and the node's pressures, by the youngest event of the kind."""
    m = _OF_NODE.search(row.message)
    subject = node(m[1] if m else name or host)
    if row.reason in READY:
        youngest = min((r for r in found if r.reason in READY), key=lambda r: r.age)
        return [told("node.kubernetes.ready", subject, READY[row.reason], row.line)] if row is youngest else []
    kind = _PRESSED[row.reason]
    if any(_RELIEVED.get(r.reason) == kind and r.age <= row.age for r in found):
        return []
    fields: dict[str, Scalar] = {"condition": kind, "reason": row.reason, "message": excerpt(row.message, 200)}
    return [told("kubernetes_condition", subject, Event(None, fields), row.line)]


def _once(found: list[Observation]) -> list[Observation]:
    """Of a condition that two events tell the last."""
    last = {_which(o): i for i, o in enumerate(found)}
    return [o for i, o in enumerate(found) if last[_which(o)] == i]


def _which(o: Observation) -> object:
    value = o.value
    fields = dict(value.fields) if isinstance(value, Event) else {}
    return o.fact, fields.get("condition") or (o.subject, fields.get("reason"), fields.get("message"))


def warning(reason: str, message: str, kind: str, name: str, host: str, line: Line, told: Told) -> Observation:
    """What one event of type Warning tells of its object; `name` is ``namespace/name``, where it is known."""
    here, shown = node(host), excerpt(message, 300)
    pod = Subject(Scope.POD, name, here)
    named = "" if name == UNNAMED else name
    fields: dict[str, Scalar]
    if kind == "pod" and reason == "FailedScheduling":
        short = SHORT.search(message)
        why = excerpt(message.partition(" preemption: ")[0].rstrip(". "), 160)
        fields = {"pod": named, "short": short[1] if short else None, "reasons": why, "message": shown}
        return told("pod_unplaced", pod, Event(None, fields), line)
    if kind == "pod" and (found := REFUSED_DEVICES.search(message)):
        fields = {"pod": named, "resource": found[1], "requested": int(found[2]), "available": int(found[3])}
        return told("pod_refused", pod, Event(None, fields), line)
    if kind == "pod" and reason in FAILING and not refused(message):
        fields = {"pod": named, "reason": reason, "infrastructure": INFRASTRUCTURE.search(named) is not None}
        return told("pod_failing", pod, Event(None, fields), line)
    if why_refused := refused(message):
        fields = {"kind": why_refused[0], "message": why_refused[1], "pod": named}
        return told(REFUSED, here, Event(None, fields), line)
    subject = node(name if kind == "node" and name else host)
    if kind == "node" and reason == "EvictionThresholdMet" and (of := _RECLAIMS.search(message)):
        pressed = next((c for word, c in (("memory", "MemoryPressure"), ("pid", "PIDPressure")) if word in of[1]), "DiskPressure")  # fmt: skip
        fields = {"condition": pressed, "reason": f"kubelet reclaims {of[1]}", "message": shown}
        return told("kubernetes_condition", subject, Event(None, fields), line)
    fields = {"reason": reason, "object": f"{kind}/{named}" if named else kind, "message": shown}
    return told("kubernetes_warning", subject, Event(None, fields), line)
