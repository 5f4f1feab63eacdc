"""A service that was told to end does so, whatever it waits for: a server that has gone away, a disk that hangs, a thread."""

from __future__ import annotations

import os
import threading
import time

from assistant.exits import Exit

WITHIN = 4.5  # seconds from SIGTERM or SIGINT to the end: supervisors and people wait for about five


def within(seconds: float = WITHIN) -> None:
    """End this process after so many seconds, if it has not ended by then. What was acknowledged stands on the disk already, and what was
    under way is found so at the next start."""

    def wait() -> None:
        time.sleep(seconds)
        os._exit(Exit.INTERRUPTED)

    threading.Thread(target=wait, name="ending", daemon=True).start()
