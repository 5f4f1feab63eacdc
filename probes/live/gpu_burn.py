"""The active test gpu-burn as a probe: for a conversation, which asks for consent, and for recordings of `gpudiag test`."""

from __future__ import annotations

from probes.active import spec
from probes.active.gpu_burn import TEST

PROBE = spec(TEST)
