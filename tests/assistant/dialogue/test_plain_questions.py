"""Plain questions as they are typed: the first sentence answers what was asked, of no machine in particular."""

from __future__ import annotations

import re

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn, answerer
from assistant.intent.parse import understand
from rules.loader import load


def first(said: str) -> str:
    """The first paragraph of the answer to a sentence that no machine is looked at for."""
    query = understand(said)
    diagnosis = diagnose(list(query.observations), load()) if query.observations else None
    return answerer(query.intent).answer(Turn(query, query.lang, load(), diagnosis)).headline


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("xid 63 is back after the reset, should we return the card?", "Not decided yet.*row.*failed"),
        ("xid 63 again after a reboot, can I keep using it?", "no new work"),
        ("Xid 63 复位后又出现，要返修吗？", "还不能断定"),
        ("our HBM temps sit at 88 all day, should we worry", "memory temperature.* 88 °C"),
        ("CUDA 12.1 app on 570 driver ok?", r"^It runs: driver 570 takes CUDA up to 12\.8"),
        ("need a newer driver than 535.161 for cu124 wheels? driver 535.161", r"^It runs, within limits.*550 or newer"),
        ("can i run cuda 13 on driver 535?", "^It does not run.*580 or newer"),
        ("is driver 480 enough for cuda 12.4?", "^Not known"),
        ("is driver 640 enough for cuda 12.4?", "^It runs: driver 640 is newer"),
        ("驱动 535 能跑 CUDA 12.4 的镜像吗", "^能运行，但有限制"),
        ("does a T4 support bf16", r"^No, T4 \(sm 7\.5\) has no BF16"),
        ("L20 能用 FP8 吗", "^支持：L20.*FP8"),
        ("does MI300X support fp8", "^Yes, MI300X takes FP8"),
        ("is nvlink supported on the rtx 4090", "^No, RTX 4090 has no NVLink"),
        ("can 3090s be connected with nvlink", r"^Yes: GeForce RTX 3090 112\.5 GB/s"),
        ("does H20 support MIG", "^Yes, H20 has MIG"),
        ("MIG 在 A10 上能用吗", "^不支持：A10 没有 MIG"),
        ("is flash attention 3 available on A100", "^No, FlashAttention 3 is for Hopper.*runs FlashAttention 2"),
        ("what compute capability is a 4090", r"compute capability 8\.9"),
        ("A100 bf16 算力多少", "^A100 的 BF16 峰值算力"),
        ("how do I enable MIG on A100", "^Run nvidia-smi"),
        ("what is the difference between MIG and MPS", "^MIG, MPS or time slicing: MIG where"),
        (
            "what does SM occupancy mean and how is it different from gpu util",
            r"^Occupancy, GPU utilization \(GPU-Util\): 2",
        ),
        ("what's the difference between NVLink and NVSwitch", "^NVLink and NVSwitch: NVLink is the link"),
        ("what does P2 state mean", "P0 is the highest"),
        ("多机时间不同步会影响训练吗", "训练本身不受影响"),
        ("clock skew between nodes, does nccl care", "Training itself does not care"),
        ("怎么测显存有没有坏", "dcgmi diag -r memtest|nvidia-smi -q -d ECC"),
        ("how do I test gpu memory for faults", "Read first what the GPU knows"),
        ("做了 bond 以后 NCCL 变慢", "只走其中一条链路"),
        ("LACP bond for RoCE good idea?", "one connection takes one leg"),
        ("ollama 跑模型用的是 CPU 不是 GPU", "ollama ps"),
        ("ollama uses cpu instead of gpu", "ollama ps tells"),
        ("pytorch 没用上显卡，一直用 CPU 跑", r"torch\.cuda\.is_available"),
        ("同样的代码在两台机器上精度对不上", "^可复现的结果"),
        ("多卡训练只有 0 号卡显存特别高", "^rank 0 显存比其他多"),
        ("why does rank 0 OOM but others do not", "^Rank 0 uses more memory"),
        ("how to request 2 gpus of type a100 in sbatch", "^Request GPUs in Slurm"),
        ("sbatch 怎么指定用 A100", "^Slurm 申请 GPU"),
        ("how do I request an H100 in a kubernetes pod spec", "^Request GPUs in Kubernetes"),
        ("what mfu should I expect on H100 for 7b", "35 to 50 % is usual"),
        ("怎么判断是网络慢还是计算慢", "^瓶颈在网络还是计算"),
        ("8 卡训练比单卡还慢", "^扩展效率"),
        ("怎么让多个容器用同一张 GPU", "^可以，一块 GPU 能跑多个任务"),
        ("重启后要检查哪些才能恢复上线", "按顺序四步"),
        ("infiniband card at 102 degrees, ok?", "^Warm, still within limits: network card at 102 °C"),
        ("IB 网卡温度 105 度正常吗", "^过热：网卡 105 °C"),
        ("光模块温度 70 度要不要紧", "^过热：光模块 70 °C"),
        ("CPU temp 95 on the gpu node", "^Too hot: CPU at 95 °C"),
        ("nvme at 55C, worry?", "^In order: drive at 55 °C"),
        ("nvswitch temperature 85, is it too hot", "^It depends: 85 °C of an NVSwitch"),
        ("memory temp 98 on an H100 ok?", "^Only for what runs already.*98 °C"),
        ("gpu temp 92 on an H100 ok?", "^No: the core temperature of one GPU is 92 °C"),
        ("vrm temp is 97 C, ok?", "not understood"),
        ("gpu temp 88 ok?", "^No: the core temperature of one GPU is 88 °C"),
        ("can a 3060 run a 7b model", "^No: 7B.*2 GPUs of 12 GB. It fits with 8-bit"),
        ("how long does training 7B on 1T tokens take on 64 H100", r"^About 19\.2 days at 40 % MFU"),
        ("64 张 H100 训练 7B 1T token 要多久", r"^MFU 40 % 时约 19\.2 天"),
        ("where do I see which NIC belongs to which GPU", "^Which NIC is near which GPU: nvidia-smi topo -m"),
        ("checklist before uncordoning a gpu node", "^Before a rebooted node"),
        ("训练代码没调用显卡", "^PyTorch 没有用上 GPU"),
        ("what is GDRCopy", "^GDRCopy: "),
        ("what is NVL72", "^NVL72: Rack of 18"),
        ("什么是胖树网络", "^胖树网络："),
        ("what is TDP", "^TDP: "),
        ("H100 的 TDP 是多少", "700 W"),
        ("8x A100 busbw 180 GB/s, ok?", "^(No|Too low|Low)"),
        ("4 卡加速比只有 1.5", "^线性的 38 %"),
        ("8 gpus speedup 5.2x", "^65 % of linear"),
        ("PCIe gen4 拷贝只有 5 GB/s 慢吗", "^偏低：主机与 GPU 之间 5 GB/s"),
        ("KV cache for llama 3 70b at 128k context?", "^40 GiB for one request"),
        ("llama 3 8b kv cache 8k batch 32", "^32 GiB for 32 requests"),
        ("llama3 70b 128k 上下文 KV cache", "^一个 128k token 的请求需 40 GiB"),
        ("does the kv cache of llama 3 8b at 128k fit on a 4090", "^16 GiB"),
        ("is 13b ok on a single 24gb card", "^No: 13B.*fits with 8-bit"),
        ("4090 24G 能跑 13B 吗", "^不够：.*8 位权重"),
        ("mixtral 8x7b in int4 on 2x3090?", "^Yes: 47B"),
        ("two 4090s for 70b int4?", "^Yes: 70B"),
        ("qwen2.5-72b int4 两张 A100 40G 放得下吗", "^够：72B"),
        ("will 70b fp8 fit in 2x48gb", "^Yes: 70B.*at least 2 GPUs of 48 GB"),
        ("can our H100 node run 405b", "^405B needs about 972 GB"),
        ("how much kv cache does 32k context take for llama 3 8b", "^4 GiB"),
        ("kv cache of llama 3 70b at 128k in fp8, how big", "^20 GiB"),
        ("cost per million tokens on 8xH100 at $2.5/h with 2500 tok/s?", r"^\$2\.22"),
        ("4xA100 at 1.8/h each and 600 tok/s/gpu, price per 1M tokens?", r"^\$0\.833"),
        ("scaling from 8 to 16 nodes gives only 1.6x, where to look", "^80 % of linear"),
        ("8 卡到 16 卡只快了 1.6 倍，正常吗", "^线性的 80 %"),
        ("can i run 70B on 2x L40S?", "^No: 70B.*4 L40S GPUs"),
        ("can i serve qwen 32b on a single 4090", "^No: .*fits with 4-bit"),
        ("OOM loading llama 70b bf16 on 2x A100 80G, what do i do", "^No: 70B"),
        ("deepseek r1 671b on 8x H100 80G possible?", "^No: 671B needs about 805 GB.*8-bit"),
        ("is it safe to cap H100s at 400W? how much perf do we lose", "^About 17 to 24 %"),
        ("cap an L40S at 300 W, how much do we lose?", "300 of 350 W"),
        ("2x A6000 enough for 70b awq?", "^Yes: "),
        ("12vhpwr connector melted, how do i check the others?", "Do not use that card"),
        ("leak detector tripped on one GB200 tray, what to do", "Take it as real"),
        ("coolant inlet 45C on our DLC H200 racks, too hot?", "class of the server"),
        ('nvidia-smi -pl 300 gives "not supported", why', "Power Limit"),
        ("difference between volatile and aggregate ecc", "^.*Volatile counts since the driver"),
        ("does enabling mig need a reboot", "^No reboot"),
        ("hotspot 102C on a 4090 but core is 78, normal?", "distance to the core"),
        ("gpu throttling at 83C, is that the limit for 3090?", "target of GeForce"),
        ("how long does fabric manager take to start after reboot, 802 errors until then", "Seconds as a rule"),
        ("fabricmanager version 550.90.07 but driver 550.127.05, will it matter?", "exactly the driver's version"),
        ("nvidia device plugin shows 0 allocatable after node reboot", "Go from below"),
        ("job hangs at init, NCCL INFO Bootstrap : Using eth0 then nothing", "cannot reach each other"),
        ("persistence mode on or off for training servers?", "Yes, on every server"),
        ("is it ok to run with ECC disabled on A6000 for training", "No on GPUs with HBM"),
        ("vllm tp=4 on PCIe cards without nvlink, slow?", "tensor parallelism"),
        ("kv cache size llama 3.1 8b, 64 users with 8k ctx", "^64 GiB for 64 requests"),
        ("gpu 2 throws xid 63 every few days even after resets, ok?", "no new work"),
        ("hbm3 junction 101c on h100, keep training?", "GPU memory is as hot as HBM may be"),
        ("mi300x hotspot 98C under load, concerned", "amd-smi static --limit"),
        ("psu cable to the 4090 looks brown at the plug", "Do not use that card"),
        ("can i leave mig on and still use the whole gpu", "more than one instance"),
        ("sglang server eats all gpu memory, is that normal", "normal"),
        ('slurm drain reason "gpu count mismatch" after reboot, what now', "fewer GPUs than slurm.conf"),
        ("liquid line temp 50C into the racks, bad?", "class of the server"),
        ("volatile ecc vs aggregate ecc which matters for rma", "Volatile counts since"),
        ("nccl stuck after bootstrap line using docker0", "cannot reach each other"),
        ("from 1 node to 4 nodes speedup is 3.7x is that ok", "^92 % of linear.*good[.]$"),
        ("gpu clocks are 8% lower on gpu 2, fine?", "^(?!.*maximum of 8)"),
    ],
)
def test_what_is_asked_is_answered_first(said: str, says: str) -> None:
    assert re.search(says, first(said), re.DOTALL), first(said)


@pytest.mark.parametrize(
    "said",
    [
        "nvidia gpu 0 is slow after reboot",
        "memory leak on the node since the update, what to do",
        "is my 4090 ok at 95C",
        "gpu-burn fails after we replaced the power connector",
        "our cluster is liquid cooled and gpu 3 shows xid 79",
    ],
)
def test_trouble_of_a_machine_is_no_question_of_a_book(said: str) -> None:
    assert understand(said).page == ""
