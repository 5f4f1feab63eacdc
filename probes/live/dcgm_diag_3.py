"""``dcgmi diag -r 3`` as a probe: for a conversation, which asks for consent, and for recordings of `gpudiag test`."""

from __future__ import annotations

from probes.active import spec
from probes.active.dcgm_diag import TESTS

PROBE = spec(TESTS[2])
