"""Who may have what run on which machine, where the person is not logged in here: Slack.

One TOML file, and what it does not grant is denied. `policy` is what it says and how it rules, `parse` reads it and names each
fault with its place, `approvals` keeps what needs a second person in the journal, `sight` leaves out what somebody may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assistant.config import Settings
    from assistant.rights.policy import Policy


def load(settings: Settings) -> Policy:
    """The policy in force; one that grants nothing when no file is set. InputError and FaultsError for one that is no good."""
    from assistant.rights.policy import Policy

    if settings.policy_file is None:
        return Policy()
    from assistant.inventory import load as machines
    from assistant.rights.parse import read

    return read(settings.policy_file, machines(settings))


def source(settings: Settings) -> Callable[[], Policy]:
    """What reads the policy and the inventory afresh: a right that was taken away counts from then on.

    Files that stand there as they were, by size and times to the nanosecond, are not read again: a busy bot asks often.
    """
    from assistant.inventory import path_of

    kept: tuple[object, Policy] | None = None

    def now() -> Policy:
        nonlocal kept
        state = _state(settings.policy_file), _state(path_of(settings))
        if kept is None or None in state or kept[0] != state:
            kept = (state, load(settings))
        return kept[1]

    return now


def _state(file: Path | None) -> object:
    """What changes with the contents of a file; None where that cannot be told."""
    if file is None:
        return ()
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)
