"""What Slurm's daemons say of a node in a system log or in their own: registered with less than it should have, refused,
lost, or taken out since a job on it cannot be killed."""

from __future__ import annotations

from knowledge.observation import AT_LEAST, Scalar, Subject, node
from probes.parse._kernel_common import Reading, body, is_command, number, rx
from probes.parse._kernel_shape import Entry, Kind
from probes.parse.sinfo_reasons import nodes

EVENTS = ("slurm_step_ended", "slurm_step_unkillable", "slurmctld_inval")
_LEAST = f"{AT_LEAST}: equal lines of the daemon were folded"
STATES = ("node.slurm.held", "node.slurm.reason", "node.slurm.outages")
TRIGGERS = (
    r"CANCELLED AT", r"STEPD TERMINATED ON", r"Kill task failed", r"to INVAL with reason", r"reported lower than configured", r"Count changed on node",
    r"[Nn]odes? \S{1,200} (?:not|now) responding", r"node \S{1,120} (?:returned to service|state set to)", r"Low \w{1,40} \(reported:", r"etting node \S{1,120} state to D",
    r"unexpectedly rebooted", r"node \S{1,120} reason set to:", r"on node \S{1,120}, draining the node",
)  # fmt: skip
KILL_FAILED = "Kill task failed"
_HINTS = (
    " responding",
    "unexpectedly rebooted",
    "to service",
    "state set to",
    "(reported:",
    "state to D",
    "reason set to:",
    "draining the node",
)
HINTS = ("CANCELLED AT", "STEPD TERMINATED", KILL_FAILED, "INVAL", "lower than configured", "Count changed", *_HINTS)
# error: Nodes n[1-2] not responding           error: Nodes n1 not responding, setting DOWN
_SILENT = r"\b[Nn]odes? (\S{1,4000}) (not responding)(?:, (setting DOWN))?"
# error: Node n1 unexpectedly rebooted boot_time=1764397401 last response=1764397001
_REBOOTED = r"\b[Nn]ode (\S{1,120}) (unexpectedly rebooted)"
# Node n1 now responding           node n1 returned to service           update_node: node n1 state set to IDLE
_BACK = r"\b[Nn]ode (\S{1,120}) (?:now responding|returned to service|state set to (?:IDLE|RESUME)\b)"
# drain_nodes: node n1 state set to DRAIN           update_node: node n1 state set to DOWN
_TAKEN = r"\bnode (\S{1,120}) (state set to (?:DRAIN\w{0,4}|DOWN|FAIL\w{0,4}))"
# error: Setting node n1 state to DOWN with reason:Not responding
_SET = r"\b[Ss]etting node (\S{1,120}) state to (?:DOWN|DRAIN)\b(?: with reason: ?(.{1,200}))?"
# error: _slurm_rpc_node_registration node=n1: Low RealMemory (reported:1548012 < 100.00% of configured:2063000)
_SHORT = r"\bnode[= ](\S{1,120}): (Low \w{1,40} \(reported:.{1,100}?\))"
# update_node: node n1 reason set to: Kill task failed
# error: validate_node_specs: Prolog or job env setup failure on node n1, draining the node
_REASON = r"\bnode (?P<node>\S{1,120}) reason set to: ?(?P<why>.{1,200})|: (?P<cause>[^:]{1,160}) on node (?P<drained>\S{1,120}), draining the node"
# error: Setting node n1 state to INVAL with reason:gres/gpu count reported lower than configured (3 < 4)
# error: _validate_gres: ... gres/gpu count reported lower than configured (7 < 8)
# error: Setting node n1 state to DRAIN with reason:gres/gpu count reported lower than configured (7 < 8)
_INVALID = r"[Ss]etting node (\S{1,120}) state to (INVAL|DRAIN|DOWN)(?: with reason: ?(.{1,200}))?"
_COUNTS = r"(\S{1,40}) count reported lower than configured \((\d{1,6}) < (\d{1,6})\)"
# slurmd[881]: error: *** STEP 88123.0 ON n1 CANCELLED AT 2025-11-12T10:00:00 DUE TO TIME LIMIT ***
_CANCELLED = r"\*\*\* (?:JOB|STEP|[A-Z]{5,12} STEP FOR) (\S{1,60}) ON \S{1,120} CANCELLED AT \S{1,40}(?: DUE TO (?P<why>[A-Z ]{1,60}?))? \*\*\*"
# error: *** EXTERN STEP FOR 88123 STEPD TERMINATED ON n1 AT 2025-11-12T10:05:00 DUE TO JOB NOT ENDING WITH SIGNALS ***
# error: *** STEP 88123.0 STEPD TERMINATED ON n1 AT 2025-11-12T10:05:00 DUE TO JOB NOT ENDING WITH SIGNALS ***
_STUCK = r"\*\*\* (?:JOB|STEP|[A-Z]{5,12} STEP FOR) (\S{1,60}) STEPD TERMINATED ON (?P<node>\S{1,120}) AT "
# update_node: node n1 reason set to: Kill task failed        error: slurmd error running JobId=88123 on node(s)=n1: Kill task failed
# error: Prolog/Epilog: Kill task failed, draining node n1
_NOT_KILLED = r"\bKill task failed\b"
_NAMED = r"\bnode(?:\(s\)=|[ =])([\w.,\[\]-]{1,400})"

_GIVEN_UP = "not responding, set to DOWN"


def read(reading: Reading) -> None:
    """One event for each node that slurmctld sets to INVAL, or takes out for what it registered with, and for each step that was ended,
    or could not be."""
    _states(reading)
    _unkillable(reading)
    for entry in reading.entries:
        if "CANCELLED AT" in entry.message and (ended := rx(_CANCELLED).search(entry.message)):
            told: dict[str, Scalar] = {
                "step": ended[1],
                "reason": (ended["why"] or "").lower(),
                "text": body(entry.message),
            }
            reading.event("slurm_step_ended", reading.node(entry), entry, told)
        if "state to" not in entry.message or (found := rx(_INVALID).search(entry.message)) is None:
            continue
        counts = rx(_COUNTS).search(found[3] or "")
        if found[2] != "INVAL" and counts is None:
            continue
        fields: dict[str, Scalar] = {
            "reason": body((found[3] or "").strip()), "resource": counts[1] if counts else None,
            "found": number(counts[2]) if counts else None, "configured": number(counts[3]) if counts else None,
            "text": body(entry.message),
        }  # fmt: skip
        reading.event("slurmctld_inval", node(found[1]), entry, fields)


def _of(reading: Reading, entry: Entry, name: str) -> Subject:
    """The node that a line names; under its longer name where that wrote the line.

    Not of a step that was cancelled: srun prints that of the job's first node, whatever node the rest of the output is about.
    """
    writer = reading.host(entry)
    return node(writer if writer.partition(".")[0] == name else name)


def _states(reading: Reading) -> None:
    """Whether Slurm gives a node work, as the last line about it says; why it does not, in the words of the first one since;
    and how often it was given up as silent and came back."""
    held: dict[str, tuple[Entry, str]] = {}
    outages: dict[str, list[Entry]] = {}
    reasons: dict[str, tuple[Entry, str]] = {}
    last: dict[str, tuple[Entry, bool]] = {}
    folded: set[str] = set()
    for entry in reading.entries:
        text = entry.message
        if not any(hint in text for hint in _HINTS):
            continue
        if told := rx(_REASON).search(text):
            for name in nodes(told["node"] or told["drained"]):
                reasons[name] = entry, body((told["why"] or told["cause"]).strip())
                if name in held:
                    held[name] = reasons[name]
            continue
        back, taken = rx(_BACK).search(text), (_SILENT, _REBOOTED, _SHORT, _SET, _TAKEN)
        if found := back or next((m for pattern in taken if (m := rx(pattern).search(text))), None):
            reading.again.add(entry.number)  # understood, though one of them makes the observation
            for name in nodes(found[1]):
                last[name] = entry, back is None
                if entry.number in reading.context.times:
                    folded.add(name)
                if back:
                    reasons.pop(name, None)
                    if held.pop(name, ("", ""))[1] == _GIVEN_UP:
                        outages.setdefault(name, []).append(entry)
                elif "setting DOWN" in text:
                    held[name] = entry, _GIVEN_UP
                else:
                    held.setdefault(name, reasons.get(name) or (entry, body(found[2] or found[0])))
    for name, (entry, is_held) in last.items():
        reading.add("node.slurm.held", node(name), entry, is_held)
        if is_held:
            reading.add("node.slurm.reason", node(name), held[name][0], held[name][1])
        ends, least = outages.get(name, ()), _LEAST if name in folded else ""
        reading.add("node.slurm.outages", node(name), ends[-1] if ends else entry, len(ends), detail=least)


def _unkillable(reading: Reading) -> None:
    """Steps whose processes outlive SIGKILL, by node, until the node is put back; without the step where no line names it."""
    stuck: dict[Subject, dict[str, Entry]] = {}
    for entry in reading.entries:
        text = entry.message
        if "STEPD TERMINATED" in text and (found := rx(_STUCK).search(text)) and not is_command(entry, found.start()):
            stuck.setdefault(_of(reading, entry, found["node"]), {}).setdefault(
                found[1], entry
            )  # the output of a job has it too
        elif entry.kind is not Kind.DAEMON or not entry.tag.startswith("slurm"):
            continue
        elif KILL_FAILED in text and (found := rx(_NOT_KILLED).search(text)) and not is_command(entry, found.start()):
            named = rx(_NAMED).search(text)
            for on in [node(name) for name in nodes(named[1])] if named else [reading.node(entry)]:
                stuck.setdefault(on, {}).setdefault("", entry)
        elif any(hint in text for hint in _HINTS) and (back := rx(_BACK).search(text)):
            stuck.pop(node(back[1]), None)
    for on, steps in stuck.items():
        for step, entry in steps.items():
            if step or len(steps) == 1:
                told: dict[str, Scalar] = {"step": step or None, "text": body(entry.message)}
                reading.event("slurm_step_unkillable", on, entry, told)
