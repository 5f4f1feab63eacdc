"""What Slurm's daemons say of a node in a system log or in their own: registered with less than it should have, or refused."""

from __future__ import annotations

from knowledge.observation import Scalar, node
from probes.parse._kernel_common import Reading, body, number, rx

EVENTS = ("slurm_step_ended", "slurmctld_inval")
TRIGGERS = (r"CANCELLED AT", r"to INVAL with reason", r"reported lower than configured", r"Count changed on node")
HINTS = ("CANCELLED AT", "INVAL", "lower than configured", "Count changed")
# error: Setting node n1 state to INVAL with reason:gres/gpu count reported lower than configured (3 < 4)
# error: _validate_gres: ... gres/gpu count reported lower than configured (7 < 8)
# error: Setting node n1 state to DRAIN with reason:gres/gpu count reported lower than configured (7 < 8)
_INVALID = r"[Ss]etting node (\S{1,120}) state to (INVAL|DRAIN|DOWN)(?: with reason: ?(.{1,200}))?"
_COUNTS = r"(\S{1,40}) count reported lower than configured \((\d{1,6}) < (\d{1,6})\)"
# slurmd[881]: error: *** STEP 88123.0 ON n1 CANCELLED AT 2025-11-12T10:00:00 DUE TO TIME LIMIT ***
_CANCELLED = r"\*\*\* (?:JOB|STEP) (\S{1,60}) ON \S{1,120} CANCELLED AT \S{1,40}(?: DUE TO ([A-Z ]{1,60}?))? \*\*\*"


def read(reading: Reading) -> None:
    """One event for each node that slurmctld sets to INVAL, or takes out for what it registered with, and for each step that was ended."""
    for entry in reading.entries:
        if "CANCELLED AT" in entry.message and (ended := rx(_CANCELLED).search(entry.message)):
            told: dict[str, Scalar] = {
                "step": ended[1],
                "reason": (ended[2] or "").lower(),
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
