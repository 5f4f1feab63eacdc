"""Who may have what run on which machine, where the person is not logged in here: Slack.

One TOML file, and what it does not grant is denied. `policy` is what it says and how it rules, `parse` reads it and names each
fault with its place, `approvals` keeps what needs a second person in the journal, `sight` leaves out what somebody may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """What reads the policy and the inventory afresh: a right that was taken away counts from then on."""
    return lambda: load(settings)
