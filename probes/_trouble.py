"""Words of trouble in lines of logs."""

from __future__ import annotations

from typing import Final

# A line that holds one of these, as a part of any word, tells of trouble, or of what no rank may lose.
TROUBLE: Final = (
    "abnormal", "abort", "assert", "blocked", "broken", "bug", "cannot", "carrier", "corrupt", "crash", "critical",
    "dead", "degraded", "denied", "disagree", "disconnect", "down", "dropped", "dump", "emerg", "erro", "exceed",
    "exception", "exit", "expired", "fail", "fatal", "fault", "fell", "forced", "halt", "hang", "hung", "illegal",
    "impossible", "insufficient", "interrupted", "invalid", "kill", "lagging", "lockup", "lost", "mismatch",
    "missing", "nan", "not", "nranks", "off", "oom", "oops", "out", "overflow", "panic", "power", "refused",
    "reject", "remap", "reset", "retired", "retry", "segv", "signal", "stall", "stop", "stuck", "syndrome",
    "terminated", "throttl", "timed", "timeout", "traceback", "unable", "uncontained", "uncorrect", "unexpected",
    "unhandled", "unknown", "unreachable", "unrecover", "unresponsive", "violation", "warn", "wrong", "xid",
)  # fmt: skip
_WORDS: Final = tuple(word.encode() for word in TROUBLE)


def tells_trouble(line: bytes) -> bool:
    """Whether a line has one of the words of TROUBLE."""
    low = line.lower()  # of ASCII alone: a search for each word takes a tenth of one for any of them
    for word in _WORDS:  # noqa: SIM110 - a generator takes as long again
        if word in low:
            return True
    return False
