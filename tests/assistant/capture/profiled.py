"""What ``gpudiag profile`` says of a job, for tests that ask for its JSON: capture it, and read the findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rules.model import Severity
from tests.conftest import Answer
from tests.live_jobs import precede

GENTLE = ("--with", "stacks,cpu")
Profile = Callable[..., Answer]
Found = dict[str, Any]
Check = Callable[[Found], None]


def favoured(*pids: int) -> None:
    """Jobs that come before other work, and before the capture."""
    for pid in pids:
        precede(pid, -12)


def data(answer: Answer) -> Found:
    """The JSON of an answer."""
    assert answer.out, answer.err
    found: Found = json.loads(answer.out)
    return found


def captured(profile: Profile, pids: list[int], check: Check, *words: str, seconds: float = 0.7) -> Found:
    """What a short capture says, once it passes `check`; made again as people make it, twice, when it does not (see above)."""

    def made(duration: float) -> Found:
        line = (
            "--pid",
            ",".join(map(str, pids)),
            *(words or GENTLE),
            "--duration",
            f"{duration:g}s",
            "--format",
            "json",
        )
        found = data(profile(*line))
        check(found)
        return found

    for duration in (seconds, 3 * seconds):
        with suppress(AssertionError):
            return made(duration)
    return made(3 * seconds)


def about(found: Found) -> list[Found]:
    """The findings on the processes, jobs and ranks of a capture, in the order of the answer."""
    pids, jobs = {str(t["pid"]) for t in found["targets"]}, {t["job"] for t in found["targets"]}
    scoped = {"process": pids, "job": jobs, "rank": {str(t["rank"]) for t in found["targets"]}}
    return [f for f in found["diagnosis"]["findings"]
            if f["subject"]["id"] in scoped.get(f["subject"]["scope"], ()) and f["grade"] != "ruled_out"]  # fmt: skip


def roots(found: Found) -> dict[str, float]:
    """Rules of warning and worse that are explained by none, with the share that they explain; the most first."""
    seen = {f["rule"]: (f["impact"] or {}).get("share", 0.0) for f in about(found) if f["role"] == "root" and f["severity"] != "info"}  # fmt: skip
    return dict(sorted(seen.items(), key=lambda pair: -pair[1]))


def rules(found: Found) -> set[str]:
    """All rules that matched on what was captured."""
    return {f["rule"] for f in about(found)}


def gravest(found: Found) -> str:
    """The severity of the worst of what was found, explained or not."""
    return max((f["severity"] for f in about(found)), key=lambda s: Severity(s).rank, default="")


def said(found: Found, rule: str) -> str:
    """The title of a finding and its evidence."""
    return " ".join(
        json.dumps([f["title"], f["because"], f["action"]["text"]]) for f in about(found) if f["rule"] == rule
    )


# --- what a capture of ranks must show ------------------------------------------------------------


def late_rank(function: str) -> Check:
    """Rank 1 is late, for the Python code of `function`; what the others show follows from it."""

    def check(found: Found) -> None:
        assert found["verdict"]["text"].startswith("Rank 1 (pid "), found["verdict"]
        assert "the other ranks wait for this one" in found["verdict"]["text"], found["verdict"]
        assert function in found["verdict"]["text"]
        assert next(iter(roots(found)), None) == "python-bound-loop", roots(found)
        assert {"rank-late", "rank-waits-in-collective"}.isdisjoint(roots(found))
        assert "rank-late" in rules(found)

    return check


def hung_rank(function: str) -> Check:
    """Rank 1 hangs the job, in `function`; nothing else is to blame."""

    def check(found: Found) -> None:
        assert (found["verdict"]["state"], gravest(found)) == ("unhealthy", "error"), found["verdict"]
        assert found["verdict"]["text"].startswith("Rank 1 (pid "), found["verdict"]
        assert "The job hangs because of this rank" in found["verdict"]["text"], found["verdict"]
        assert function in found["verdict"]["text"]
        assert "sleep-or-lock-in-loop" not in roots(found)
        assert len([f for f in about(found) if f["role"] == "root" and f["severity"] != "info"]) == 1, roots(found)

    return check


# --- what a planted fault must show: rule, function, and the least share of the window ---------------

FAULTS = {
    "data": ("batches-made-in-training-process", "decode_slowly", 0.3),
    "data-workers": ("loader-workers-busy", "decode_slowly", 0.2),
    "python": ("python-bound-loop", "tokenize_slowly", 0.3),
    "gil": ("interpreter-lock-contended", "score_in_background", 0.2),
    "sync": ("values-read-one-by-one", "read_every_value", 0.05),
    "checkpoint": ("checkpoint-in-loop", "save_checkpoint", 0.3),
    "logging": ("logging-in-loop", "log_metrics", 0.1),
}  # fmt: skip


def planted(fault: str) -> Check:
    """The fault is the root, and its function is named."""
    rule, function, share = FAULTS[fault]

    def check(found: Found) -> None:
        assert next(iter(roots(found)), None) == rule, roots(found)
        assert roots(found)[rule] >= share
        assert function in said(found, rule)
        assert function in found["verdict"]["text"]
        assert (found["verdict"]["state"], gravest(found)) == ("degraded", "warning"), found["verdict"]

    return check
