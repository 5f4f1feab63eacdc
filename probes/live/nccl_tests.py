"""The active test nccl-tests as a probe: for a conversation, which asks for consent, and for recordings of `gpudiag test`."""

from __future__ import annotations

from probes.active import spec
from probes.active.nccl_tests import TEST

PROBE = spec(TEST)
