"""Shape of ``knowledge/data/pytorch/*.yaml``: signatures of PyTorch and its surroundings."""

from __future__ import annotations

from typing import Literal

from knowledge.schema import nccl


class Entry(nccl.Entry):
    """As a signature of NCCL; `when` names the check that tells entries of one pattern apart."""

    kind: Literal["signature"]
    when: Literal["", "oom:full", "oom:fragmented", "oom:near_fit", "oom:other_process", "oom:limited"] = ""
