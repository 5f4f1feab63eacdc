"""What runs inside a target while it is captured: Python 3.8, the standard library and the target's own torch.

The modules are sent as one source text (`probes.capture.guest.guest` joins them in the order of `PARTS`), run by a thread of their
own, and leave nothing behind: no hook, no descriptor, no thread, no module.
"""

from __future__ import annotations

PARTS = ("report", "forks", "reading", "anchors", "optimizers", "steps", "session", "budget", "memory", "main")
