"""A capture that was looked at goes to stdout, in the format that was asked for."""

from __future__ import annotations

import argparse

from assistant.capture import page
from assistant.capture.head import bad_of, told
from assistant.capture.looking import Seen
from assistant.exits import Exit
from assistant.output import write
from assistant.render.trace_page import Page, show
from probes.capture.manifest import rows

SCHEMA = "gpudiag/profile/1"


def give(args: argparse.Namespace, seen: Seen) -> int:
    """Writes the answer; returns the exit code."""
    output = args.settings.output
    if output.format == "html":
        from assistant.capture import html

        write(html.page(args, seen))
    else:
        whole = Page(SCHEMA, page.data(seen, output.lang) if output.format == "json" else {},
                     lambda: page.parts(seen, output.lang, args.verbose))  # fmt: skip
        write(show(whole, output))
    return code(seen)


def code(seen: Seen) -> int:
    """DESIGN section 3: 1 with a finding, 3 when nothing could be seen of a target."""
    if bad_of(seen):
        return Exit.FINDING
    blind = [
        t for t, row in seen.targets if not any(p.get("outcome") in ("ok", "partial") for p in rows(row.get("parts")))
    ]
    return Exit.UNDECIDED if blind or not told(seen) else Exit.OK
