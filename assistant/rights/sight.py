"""What somebody may see of other users' processes, by their roles. Secrets are masked for everybody, their own included."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from assistant.rights.model import Sight
from knowledge.language import Text

HIDDEN = "***"
WHY = Text(
    "Other users' names and command lines are left out: no role of yours may see them.",
    "已省略其他用户的名称与命令行：您的角色均不可查看。",
)


def command_line(argv: Sequence[str], sights: Collection[Sight], *, own: bool = False) -> tuple[str, ...]:
    """`argv` of a process as it may be shown; of another user's only the program, without the right. `own`: the viewer's."""
    from probes.collectors.processes import masked_arguments

    shown = tuple(masked_arguments(list(argv)))
    if own or Sight.COMMAND_LINES in sights or not shown:
        return shown
    program, *more = shown[0].split() or [""]  # a process may write its whole command line into its name
    return (program, HIDDEN) if more or len(shown) > 1 else (program,)


def user(name: str, sights: Collection[Sight], *, own: bool = False) -> str:
    """The name of a process's owner as it may be shown."""
    return name if own or Sight.USERS in sights or not name else HIDDEN
