"""What tests share: costs that are said in the same words."""

from __future__ import annotations

from knowledge.language import Text

LIGHT = Text("opens a context on every GPU for some seconds", "会在每块 GPU 上打开上下文数秒")
LINKS = Text("fills the links of the GPUs; their memory is used for buffers", "会占满 GPU 链路，并占用部分显存作缓冲")
STRESS = Text(
    "loads every GPU to its power limit and makes the node hot: use it on drained nodes",
    "会将每块 GPU 加载至功率上限并使节点升温：请在已 drain 的节点上使用",
)
ADAPTERS = Text(
    "fills the RDMA ports of this node: whatever else uses them is slower for that time",
    "会占满本节点的 RDMA 端口：期间其他使用者会变慢",
)
NO_GPU = Text("the NVIDIA driver has no GPU here", "NVIDIA 驱动在此没有 GPU")
