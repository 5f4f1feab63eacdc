"""Who is at the terminal."""

from __future__ import annotations

import os
from collections.abc import Mapping


def person(environ: Mapping[str, str] = os.environ) -> str:
    """The name of the account; behind sudo that of who called it. The number where there is no name."""
    import pwd

    behind = environ.get("SUDO_USER", "").strip()
    if behind and behind != "root" and os.geteuid() == 0:
        return behind
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
