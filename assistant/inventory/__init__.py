"""The inventory file: which other machines there are, what each is called, and how it is reached.

One TOML file in the user's folder of settings, or the system's, or the one that is named. `model` is what it says, `parse` reads
it and names each fault with its place, `target` is the one machine that a command line means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.config import Settings
    from assistant.inventory.model import Hosts

NAME = "inventory.toml"  # beside config.toml


def path_of(settings: Settings, named: str = "") -> Path | None:
    """The inventory file: `named`, else as it is set, else the user's, else the system's; None when there is none.

    A file that was named need not be there: whoever reads it says so.
    """
    from pathlib import Path

    from assistant.config import SYSTEM_FILE, user_file

    if named:
        return Path(named).expanduser()
    if settings.inventory is not None:
        return settings.inventory
    return next((p for p in (user_file().with_name(NAME), SYSTEM_FILE.with_name(NAME)) if p.is_file()), None)


def load(settings: Settings, named: str = "") -> Hosts:
    """What the inventory file says; no machine at all when there is none. InputError and FaultsError for one that is no good."""
    from assistant.inventory.model import Hosts

    path = path_of(settings, named)
    if path is None:
        return Hosts()
    from assistant.inventory.parse import read

    return read(path)
