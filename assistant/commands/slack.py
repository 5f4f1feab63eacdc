"""``gpudiag slack``: the bot."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.commands._listen import address
from assistant.output import say, write

if TYPE_CHECKING:
    from assistant.config import Settings

NAME = "slack"
HELP = "the Slack bot: /gpudiag, threads, incidents"
_MISSING = "the bot needs the extra gpudiag[slack]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``slack [serve] | manifest``."""
    parser.set_defaults(action="serve", http=None, print_="")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions (default: serve)")
    serve = actions.add_parser("serve", help="run it until SIGTERM")
    for one in (parser, serve):
        one.add_argument(
            "--http", type=address, default=argparse.SUPPRESS, metavar="HOST:PORT",
            help="take signed requests over HTTP there instead of Socket Mode",
        )  # fmt: skip
        one.add_argument(
            "--print", choices=("systemd",), dest="print_", default=argparse.SUPPRESS,
            help="print a unit file for running it, and stop",
        )  # fmt: skip
    manifest = actions.add_parser("manifest", help="the app's manifest, to be pasted where Slack asks for one")
    manifest.add_argument(
        "--url", default="", metavar="URL", help="where Slack reaches the bot over HTTPS; without it Socket Mode"
    )
    manifest.add_argument(
        "--command", default="/gpudiag", metavar="/NAME", help="the slash command (default: /gpudiag)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve, or print the manifest."""
    if args.action == "manifest":
        from assistant.slack.manifest import plain, text

        shown = text(args.url, args.command)
        if args.settings.output.format == "json":  # Slack takes both
            shown = json.dumps(plain(shown), indent=1, ensure_ascii=False) + "\n"
        write(shown)
        return 0
    if args.print_:
        write((Path(__file__).parent.parent / "deploy" / "gpudiag-slack.service").read_text())
        return 0
    return _serve(args, args.settings)


def _serve(args: argparse.Namespace, settings: Settings) -> int:
    import asyncio

    from assistant.exits import Exit
    from assistant.slack.tokens import tokens
    from assistant.store.location import StoreError
    from knowledge.errors import GpudiagError, UsageError

    given = tokens(settings, http=args.http is not None)
    try:
        from assistant.slack.serve import serve
    except ModuleNotFoundError as error:
        raise UsageError(f"{_MISSING} ({error.name} is not installed)", hint="pip install 'gpudiag[slack]'") from error
    import logging

    from assistant.commands.rules import ruleset

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    rules = ruleset(argparse.Namespace(site=None, rules=[]), settings)
    if settings.policy_file is None:
        say("gpudiag: no policy_file is set: nobody may ask for anything (docs/rights.md)", args.quiet)
    try:
        asyncio.run(
            serve(settings, rules, given, args.http, lambda where: say(f"gpudiag: listening ({where})", args.quiet))
        )
    except StoreError as error:
        raise GpudiagError(
            f"the bot writes down what it is asked to do before it does it, and cannot: {error.said.en}",
            hint="set history_url, or look at what is wrong with it",
        ) from error
    return Exit.OK
