"""Starts the app: the one thing that the command line calls."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from knowledge.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from tui.app import GpudiagApp


def run(args: argparse.Namespace) -> int:
    """Until the person leaves; the exit code. UsageError where there is no terminal that can show it."""
    if args.serve is not None:
        from tui.serve import run as serve

        return serve(args)
    web = bool(os.environ.get("TEXTUAL_DRIVER"))  # set by textual-serve for its children: a browser is the terminal
    if not web and (why := unusable()):
        raise UsageError(why, hint="gpudiag check and gpudiag ask answer over a pipe")
    _known(args)
    from tui.app import GpudiagApp

    return _run(GpudiagApp(args), web)


def _known(args: argparse.Namespace) -> None:
    """UsageError for a screen or a theme that there is not."""
    from knowledge.errors import nearest_hint
    from tui.themes import NAMES

    if args.theme and args.theme not in NAMES:
        raise UsageError(
            f"there is no theme {args.theme!r}", hint=nearest_hint(args.theme, NAMES) or ", ".join(NAMES),
            zh=f"没有主题 {args.theme!r}", hint_zh=nearest_hint(args.theme, NAMES, lang="zh"),
        )  # fmt: skip
    if args.screen:
        from tui.screens import screens

        names = ["chat", *(s.name for s in screens())]
        if args.screen not in names:
            raise UsageError(
                f"there is no screen {args.screen!r}", hint=nearest_hint(args.screen, names) or ", ".join(names),
                zh=f"没有画面 {args.screen!r}", hint_zh=nearest_hint(args.screen, names, lang="zh"),
            )  # fmt: skip


def unusable() -> str:
    """Why the app cannot be shown here; empty when it can."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        return "the terminal app needs a terminal"
    if os.environ.get("TERM", "") in ("", "dumb"):
        return "this terminal cannot be drawn on (TERM is dumb, or not set)"
    return ""


def _run(app: GpudiagApp, web: bool) -> int:
    import asyncio

    from tui.terminal import Guard, Terminal

    if not web:
        app.driver_class = Terminal

    async def live() -> int:
        loop = asyncio.get_running_loop()
        terminal = sys.stdin.fileno() if sys.stdin is not None else None

        def leave(code: int) -> None:
            loop.call_soon_threadsafe(app.leave, code)

        with Guard(leave, last=app.jobs.close, terminal=terminal) as guard:
            await app.run_async()
            return guard.code

    return asyncio.run(live()) or app.return_value or app.return_code or 0
