"""``scontrol ping``, and what Slurm's commands say when slurmctld does not answer them.

Source of the lines: scontrol.c (``_print_ping``) and slurm_errno.c of Slurm 17 to 25.
"""

from __future__ import annotations

import re

from knowledge.observation import Event, Observation, Status, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, lines_of

NAME, REVISION = "slurm-controller", 1
PROVIDES = ("slurm_controller_silent",)
# Slurmctld(primary) at slurm01 is DOWN        Slurmctld(primary/backup) at slurm01/slurm02 are UP/DOWN, of versions before 18.08
_PING = re.compile(r"\s{0,4}Slurmctld\((primary|backup\d{0,3})\) at ([\w.-]{1,80}) is (UP|DOWN)\s{0,8}")
# slurm_load_jobs error: Unable to contact slurm controller (connect failure)
_REFUSED = re.compile(
    r"\s{0,4}(?:[\w:. -]{1,80}: )?(?:error: )?Unable to contact slurm controller(?: \(([a-z ]{3,40})\))?\s{0,8}"
)


def sniff(head: str) -> int:
    """93 for a line of either."""
    lines = [line.text[:300] for line in lines_of(head)[:400]]
    return 93 if any(_PING.fullmatch(line) or _REFUSED.fullmatch(line) for line in lines) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """An event for each controller that does not answer; none seen where all that were asked do."""
    here, out, asked = node(context.host), list[Observation](), False
    for line in lines_of(text):
        ping, refused = _PING.fullmatch(line.text[:300]), _REFUSED.fullmatch(line.text[:300])
        asked = asked or ping is not None
        if refused or (ping and ping[3] == "DOWN"):
            shown = excerpt(clean(line.text.strip()), 200)
            what = Event(None, {"controller": ping[2] if ping else "", "role": ping[1] if ping else "", "text": shown})
            source = context.at(NAME, REVISION, line.number)
            out.append(Observation("slurm_controller_silent", here, what, Status.OK, source, excerpt=shown))
    if asked and not out:
        out.append(Observation("slurm_controller_silent", here, None, Status.NONE_SEEN, context.at(NAME, REVISION)))
    return out


FORMAT = DocumentFormat(NAME, "scontrol ping", REVISION, PROVIDES, sniff, parse)
