"""Another machine, asked through ssh, Slurm or Kubernetes: nothing is installed there, nothing is written there."""

from __future__ import annotations

from knowledge.errors import GpudiagError

__all__ = ["ConnectError"]


class ConnectError(GpudiagError):
    """A machine that cannot be reached, or on which nothing of ours can run. The hint says what to do about it."""
