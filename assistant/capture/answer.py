"""A capture that was looked at goes to stdout, in the format that was asked for."""

from __future__ import annotations

import argparse

from assistant.capture import page
from assistant.capture.looking import Seen
from assistant.output import write
from assistant.render.trace_page import Page, show

SCHEMA = "gpudiag/profile/1"


def give(args: argparse.Namespace, seen: Seen) -> int:
    """Writes the answer; returns the exit code."""
    output = args.settings.output
    if output.format == "html":
        from assistant.capture import html

        write(html.page(args, seen))
    else:
        data = page.data(seen, output.lang) if output.format == "json" else {}
        whole = Page(SCHEMA, data, lambda: page.parts(seen, output.lang, args.verbose, now=output.now))
        write(show(whole, output))
    return seen.about.exit
