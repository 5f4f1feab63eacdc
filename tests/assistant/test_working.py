"""What a GPU really does, from planted counters of each source: the class stands in the first line, and healthy loads are quiet.

A set is a source, a model and what the counters say; several values are samples, one after the other. The figures are ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random

from assistant.diagnosis import Diagnosis, State, diagnose
from assistant.dialogue import Turn, _work, answerer
from assistant.find import topic
from assistant.intent.parse import understand
from assistant.intent.query import Intent, Query
from assistant.render.json_ import plain
from assistant.render.view import view
from assistant.sources import parse_text
from knowledge.derive import derive
from knowledge.derive.working import in_waves
from knowledge.lexicon import lexicon
from knowledge.observation import Observation, Scope, Source, Subject, gpu
from rules.loader import load
from tests.cases import each

Figures = Mapping[str, float | Sequence[float]]
H100, A100, A100_PCIE = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"
V100, L4, T4, H200, B200, L40S, A30, A40 = (
    "Tesla V100-SXM2-32GB", "NVIDIA L4", "Tesla T4", "NVIDIA H200", "NVIDIA B200", "NVIDIA L40S", "NVIDIA A30", "NVIDIA A40",
)  # fmt: skip
DCGM = {
    "util": ("DCGM_FI_DEV_GPU_UTIL", 1.0), "copies": ("DCGM_FI_DEV_MEM_COPY_UTIL", 1.0), "power": ("DCGM_FI_DEV_POWER_USAGE", 1.0),
    "limit": ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1.0), "sm": ("DCGM_FI_PROF_SM_ACTIVE", 0.01), "held": ("DCGM_FI_DEV_FB_USED", 1.0),
    "tensor": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.01), "dram": ("DCGM_FI_PROF_DRAM_ACTIVE", 0.01), "clock": ("DCGM_FI_DEV_SM_CLOCK", 1.0),
    "fp32": ("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 0.01), "fp64": ("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 0.01), "rx": ("DCGM_FI_PROF_PCIE_RX_BYTES", 1e9),
    "tx": ("DCGM_FI_PROF_PCIE_TX_BYTES", 1e9), "nvlink": ("DCGM_FI_PROF_NVLINK_TX_BYTES", 1e9), "engine": ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.01),
    "most": ("DCGM_FI_DEV_MAX_SM_CLOCK", 1.0), "warps": ("DCGM_FI_PROF_SM_OCCUPANCY", 0.01), "heat": ("DCGM_FI_DEV_THERMAL_VIOLATION", 1.0), "reasons": ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1.0),
}  # fmt: skip
DMON = {"util": "GPUTL", "copies": "MCUTL", "power": "POWER", "sm": "SMACT", "tensor": "TENSO", "dram": "DRAMA", "fp32": "FP32A", "fp64": "FP64A",
        "engine": "GRACT", "warps": "SMOCC", "rx": "PCIRX", "tx": "PCITX", "nvlink": "NVLTX", "clock": "SMCLK", "held": "FBUSD"}  # fmt: skip


def rows(figures: Figures) -> list[dict[str, float]]:
    """One row a sample; what has one value has it in each."""
    n = max((len(v) for v in figures.values() if isinstance(v, Sequence)), default=1)
    return [{k: v[i % len(v)] if isinstance(v, Sequence) else v for k, v in figures.items()} for i in range(n)]


def scrape(model: str, figures: Figures) -> str:
    """dcgm-exporter; several samples carry times, as Prometheus exports them."""
    every, out = rows(figures), []
    for i, row in enumerate(every):
        stamp = f" {1_790_000_000_000 + 15_000 * i}" if len(every) > 1 else ""
        for key, value in row.items():
            name, factor = DCGM[key]
            labels = f'gpu="0",UUID="GPU-7d0c1f2e-0000-4000-8000-000000000001",modelName="{model}",Hostname="oak-1"'
            out.append(f"{name}{{{labels}}} {value * factor:g}{stamp}")
    return "\n".join(out) + "\n"


def queried(model: str, figures: Figures) -> str:
    """What Prometheus answers to query_range, a sample in 15 s."""
    every, series = rows(figures), []
    for key in figures:
        name, factor = DCGM[key]
        labels = {
            "__name__": name,
            "gpu": "0",
            "UUID": "GPU-7d0c1f2e-0000-4000-8000-000000000001",
            "modelName": model,
            "Hostname": "oak-1",
        }
        values = [[1_790_000_000 + 15 * i, f"{row[key] * factor:g}"] for i, row in enumerate(every)]
        series.append({"metric": labels, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def mig(model: str, figures: Figures) -> str:
    """dcgm-exporter of a GPU that MIG divides: profiling fields by instance."""
    return scrape(model, figures).replace(',Hostname="', ',GPU_I_PROFILE="3g.40gb",GPU_I_ID="3",Hostname="')


def dcgmi(model: str, figures: Figures) -> str:
    keys = list(figures)
    head = f"#Entity   {'  '.join(DMON[k] for k in keys)}{' ' * 20}\nID\n"
    return head + "".join(
        f"GPU 0     {'  '.join(f'{r[k] * DCGM[k][1]:.6g}' for k in keys)}{' ' * 16}\n" for r in rows(figures)
    )


def instances(model: str, figures: Figures) -> str:
    """dcgmi dmon of two MIG instances, of which the second works."""
    keys = list(figures)
    head = f"#Entity   {'  '.join(DMON[k] for k in keys)}\nID\n"
    return head + "".join(
        f"GPU-I 9   {'  '.join(f'{r[k] * DCGM[k][1]:.6g}' for k in keys)}\nGPU-I 10   {'  '.join('0.52' if k == 'tensor' else '0.93' for k in keys)}\n"
        for r in rows(figures)
    )


def pmon(model: str, figures: Figures) -> str:
    """nvidia-smi pmon of a GPU with one program."""
    head = "# gpu         pid   type     sm    mem    enc    dec    command\n# Idx           #    C/G      %      %      %      %    name\n"
    return head + "".join(
        f"    0       4242     C     {r['util']:.0f}     {r['copies']:.0f}      -      -    python\n"
        for r in rows(figures)
    )


def smi_dmon(model: str, figures: Figures) -> str:
    head = "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk\n# Idx      W      C      C      %      %      %      %    MHz    MHz\n"
    return head + "".join(
        f"    0    {r['power']:.0f}     51     62    {r['util']:.0f}     {r['copies']:.0f}      0      0   2619   1755\n"
        for r in rows(figures)
    )


def violations(model: str, figures: Figures) -> str:
    """nvidia-smi dmon -s puv."""
    head = "# gpu    pwr     sm  pviol  tviol\n# Idx      W      %      %   bool\n"
    return head + "".join(
        f"    0 {r['power']:.0f} {r['util']:.0f} {r['pviol']:.0f} {r['tviol']:.0f}\n" for r in rows(figures)
    )


def links(model: str, figures: Figures) -> str:
    """nvidia-smi dmon -s put: neither the model nor its link."""
    head = "# gpu    pwr     sm    mem  rxpci  txpci \n# Idx      W      %      %   MB/s   MB/s \n"
    return head + "".join(
        f"    0 {r['power']:.0f} {r['util']:.0f} {r['copies']:.0f} {1000 * r['rx']:.0f} {1000 * r['tx']:.0f} \n"
        for r in rows(figures)
    )


def clocks(model: str, figures: Figures) -> str:
    """nvidia-smi dmon -s puc: no highest clock."""
    head = "# gpu    pwr     sm    mem   pclk\n# Idx      W      %      %    MHz\n"
    return head + "".join(
        f"    0 {r['power']:.0f} {r['util']:.0f} {r['copies']:.0f} {r['clock']:.0f}\n" for r in rows(figures)
    )


def bare(model: str, figures: Figures) -> str:
    """A query without its header, below the command."""
    asked = "ops@oak-1:~$ nvidia-smi --query-gpu=index,utilization.gpu,power.draw,power.limit --format=csv,noheader,nounits -l 1\n"
    return asked + "".join(f"0, {r['util']:.0f}, {r['power']:.2f}, {r['limit']:.2f}\n" for r in rows(figures))


def rocm(model: str, figures: Figures) -> str:
    """rocm-smi -u --showmemuse -P."""
    (row,) = rows(figures)
    said = (
        f"GPU use (%): {row['util']}", f"GPU Memory Read/Write Activity (%): {row['copies']}",
        f"Current Socket Graphics Package Power (W): {row['power']}.0",
    )  # fmt: skip
    banner, end = (
        f"{'=' * 28} ROCm System Management Interface {'=' * 28}",
        f"{'=' * 32} End of ROCm SMI Log {'=' * 32}",
    )
    return "\n".join((banner, *(f"GPU[0]\t\t: {line}" for line in said), end, ""))


def gpm(model: str, figures: Figures) -> str:
    """nvidia-smi dmon --gpm-metrics 2,5,10,12."""
    head = "# gpu    pwr     sm    mem   smutil   mmaact     dram     fp32\n# Idx      W      %      %    GPM:%    GPM:%    GPM:%    GPM:%\n"
    return head + "".join(
        f"    1    {r['power']:.0f}    {r['util']:.0f}     12   {r['sm']:.1f}   {r['tensor']:.1f}   {r['dram']:.1f}   {r['fp32']:.1f}\n"
        for r in rows(figures)
    )


def csv(model: str, figures: Figures) -> str:
    """nvidia-smi --query-gpu -l: a row for each look."""
    head = "timestamp, name, pci.bus_id, utilization.gpu [%], utilization.memory [%], power.draw [W], power.limit [W], memory.used [MiB]\n"
    return head + "".join(
        f"2026/07/14 08:{i // 60:02d}:{i % 60:02d}.000, {model}, 00000000:3B:00.0, {r['util']:.0f} %, {r.get('copies', 5):.0f} %, "
        f"{r['power']:.2f} W, {r['limit']:.2f} W, {r.get('held', 9000):.0f} MiB\n"
        for i, r in enumerate(rows(figures))
    )


def smi_exporter(model: str, figures: Figures) -> str:
    (row,) = rows(figures)
    label = 'uuid="7d0c1f2e-0000-4000-8000-000000000001"'
    return (
        f'nvidia_smi_gpu_info{{index="0",name="{model}",pci_bus_id="00000000:3B:00.0",{label}}} 1\n'
        f"nvidia_smi_utilization_gpu_ratio{{{label}}} {row['util'] / 100}\n"
        f"nvidia_smi_utilization_memory_ratio{{{label}}} {row.get('copies', 4) / 100}\n"
        f"nvidia_smi_power_draw_watts{{{label}}} {row['power']}\nnvidia_smi_enforced_power_limit_watts{{{label}}} {row['limit']}\n"
    )


def amd(model: str, figures: Figures) -> str:
    (row,) = rows(figures)

    def measured(value: float, unit: str) -> dict[str, object]:
        return {"value": value, "unit": unit}

    one = {
        "gpu": 0, "usage": {"gfx_activity": measured(row["util"], "%"), "umc_activity": measured(row["copies"], "%")},
        "power": {"socket_power": measured(row["power"], "W")}, "limit": {"socket_power": measured(row["limit"], "W")},
    }  # fmt: skip
    return json.dumps({"gpu_data": [one]})


def capture(model: str, figures: Figures) -> list[Observation]:
    """What NVML and GPM tell of a captured window."""
    names = {
        "util": "utilization",
        "sm": "sm_activity",
        "tensor": "tensor_activity",
        "dram": "memory_bandwidth",
        "power": "power.share",
    }
    (row,) = rows(figures)
    source = Source("gpu-samples", "capture.json")
    return [
        Observation(f"gpu.window.{names[k]}", gpu("0000:3b:00.0", "oak-1"), float(v), source=source)
        for k, v in row.items()
    ]


def nvml(model: str, figures: Figures) -> list[Observation]:
    """One look of the live probe, with GPM."""
    facts = {
        "util": "gpu.utilization.core", "sm": "gpu.activity.sm", "tensor": "gpu.activity.tensor", "dram": "gpu.activity.dram",
        "power": "gpu.power.draw", "limit": "gpu.power.limit",
    }  # fmt: skip
    (row,) = rows(figures)
    card, source = gpu("0000:3b:00.0", "oak-1"), Source("nvml-snapshot", "nvmlDeviceGetUtilizationRates(0)")
    told = [Observation(facts[k], card, int(v) if k == "util" else float(v), source=source) for k, v in row.items()]
    return [*told, Observation("gpu.name", card, model, source=source)]


WAVE = [99, 98, 99, 0, 1, 0, 97, 99, 98, 0, 0, 2, 99, 98, 97, 0]
WARM = [0, 0, 0, *[99, 98] * 8]
TEN = [99, 98] * 6

SICK: tuple[tuple[str, Callable[[str, Figures], str | list[Observation]], str, Figures], ...] = (
    ("gpu-busy-doing-nothing", scrape, H100, {"util": 99, "power": 131, "sm": 7, "tensor": 1, "dram": 2}),
    ("gpu-busy-doing-nothing", scrape, A100, {"util": 100, "power": 88, "tensor": 0, "dram": 1}),
    ("gpu-busy-doing-nothing", scrape, V100, {"util": 100, "power": 52, "copies": 1}),
    ("gpu-busy-doing-nothing", scrape, B200, {"engine": 99, "power": 214, "sm": 11, "tensor": 0.4, "dram": 1.2}),
    ("gpu-busy-doing-nothing", dcgmi, H100, {"util": TEN, "power": 128, "sm": 9, "tensor": 0, "dram": 1}),
    ("gpu-busy-doing-nothing", smi_dmon, H100, {"util": TEN, "copies": 0, "power": 119}),
    ("gpu-busy-doing-nothing", csv, H100, {"util": 100, "power": 130, "limit": 700}),
    ("gpu-busy-doing-nothing", csv, L40S, {"util": TEN, "power": 92, "limit": 350}),
    ("gpu-busy-doing-nothing", smi_exporter, A100, {"util": 100, "power": 84, "limit": 400}),
    ("gpu-busy-doing-nothing", amd, "", {"util": 100, "copies": 0, "power": 168, "limit": 750}),
    ("gpu-busy-doing-nothing", capture, H100, {"util": 99, "power": 20, "sm": 8}),
    ("gpu-busy-doing-nothing", nvml, H200, {"util": 100, "power": 140, "limit": 700, "sm": 6, "tensor": 0, "dram": 1}),
    ("gpu-waits-within-kernels", scrape, A100, {"util": 98, "sm": 64, "tensor": 3, "dram": 11, "fp32": 6, "power": 148}),
    ("gpu-waits-within-kernels", dcgmi, L4, {"util": TEN, "sm": 55, "tensor": 6, "dram": 12, "fp32": 4}),
    ("gpu-waits-within-kernels", nvml, H100, {"util": 99, "sm": 41, "tensor": 5, "dram": 9, "power": 248, "limit": 700}),
    ("gpu-computes-without-tensor-cores", scrape, A100, {"util": 99, "sm": 92, "tensor": 0, "dram": 28, "fp32": 71, "power": 371}),
    ("gpu-computes-without-tensor-cores", scrape, T4, {"util": 99, "sm": 88, "tensor": 1, "dram": 40, "fp32": 68, "power": 69}),
    ("gpu-bound-by-nvlink", dcgmi, "", {"util": TEN, "sm": 30, "tensor": 11, "dram": 29, "nvlink": 404, "power": 332}),
    ("gpu-exchanges-over-pcie", scrape, H200, {"util": 98, "sm": 25, "tensor": 9, "dram": 11, "rx": 47, "tx": 46, "power": 251}),
    ("gpu-slowed-by-lowered-limit", scrape, A100, {"util": 100, "power": 249, "limit": 250, "sm": 93, "tensor": 41, "dram": 30, "clock": 930, "most": 1410}),
    ("gpu-slowed-by-lowered-limit", csv, H100, {"util": TEN, "copies": 40, "power": 398, "limit": 400}),
    ("gpu-busy-doing-nothing", csv, H100, {"util": TEN, "copies": 1, "power": 214, "limit": 700}),
    ("gpu-busy-doing-nothing", scrape, A100, {"util": 100, "copies": 0, "power": 129, "tensor": 0, "dram": 1.1}),
    ("gpu-busy-doing-nothing", csv, T4, {"util": TEN, "copies": 0, "power": 29, "limit": 70}),
    ("gpu-waits-within-kernels", dcgmi, "", {"util": TEN, "sm": 93, "warps": 20, "tensor": 7, "dram": 12}),
    ("gpu-exchanges-over-pcie", links, L40S, {"util": TEN, "copies": 44, "power": 183, "rx": 22.1, "tx": 21.9}),
    ("gpu-bound-by-pcie", scrape, H100, {"util": 92, "sm": 22, "tensor": 6, "dram": 9, "rx": 49, "tx": 1, "power": 190}),
    ("gpu-bound-by-pcie", scrape, A100_PCIE, {"util": 96, "tensor": 4, "dram": 12, "tx": 23, "rx": 0.2, "power": 110}),
    ("gpu-bound-by-nvlink", scrape, H100, {"util": 99, "sm": 31, "tensor": 8, "dram": 24, "nvlink": 305, "power": 320}),
    ("gpu-bound-by-nvlink", scrape, A100, {"util": [99] * 12, "sm": 28, "tensor": 9, "dram": 21, "nvlink": 205, "power": 170}),
    ("gpu-starved-in-waves", smi_dmon, A100, {"util": WAVE, "copies": 30, "power": 250}),
    ("gpu-starved-in-waves", dcgmi, H100, {"util": 100, "sm": [92, 93, 91, 6, 5, 6] * 3, "tensor": 28}),
    ("gpu-starved-in-waves", csv, A100, {"util": 100, "copies": 20, "power": [371, 366, 372, 96, 94, 210] * 3, "limit": 400}),
    ("gpu-starved-in-waves", scrape, H100, {"util": WAVE, "sm": 45, "power": 330}),
    ("gpu-starved-in-waves", queried, H200, {"util": WAVE, "power": 380}),
    ("gpu-held-down-by-heat", queried, A100, {"util": TEN, "power": 260, "clock": 700, "most": 1410, "heat": [i * 9e9 for i in range(12)]}),
    ("gpu-starved-in-waves", csv, T4, {"util": WAVE, "power": 45, "limit": 70}),
    ("mig-instance-does-little", mig, A100, {"engine": 99, "sm": 7, "tensor": 0, "dram": 1, "held": 9000}),
    ("mig-instance-does-little", mig, H100, {"engine": WAVE, "sm": 45, "held": 9000}),
    ("gpu-held-down-by-heat", violations, A100, {"util": TEN, "power": 210, "pviol": 0, "tviol": [1, 0]}),
    ("gpu-busy-doing-nothing", gpm, H200, {"util": TEN, "power": 141, "sm": 11, "tensor": 0, "dram": 2, "fp32": 1}),
    ("gpu-waits-within-kernels", gpm, H200, {"util": TEN, "power": 240, "sm": 49, "tensor": 3, "dram": 12, "fp32": 7}),
    ("gpu-computes-without-tensor-cores", gpm, H200, {"util": TEN, "power": 520, "sm": 93, "tensor": 0.4, "dram": 19, "fp32": 70}),
    ("mig-instance-does-little", instances, A30, {"engine": TEN, "sm": 6, "tensor": 0, "dram": 1}),
    ("gpu-busy-doing-nothing", pmon, "", {"util": TEN, "copies": 0}),
    ("gpu-bound-by-pcie", links, L40S, {"util": TEN, "copies": 11, "power": 121, "rx": 24.1, "tx": 0.2}),
    ("gpu-clock-low-under-load", clocks, T4, {"util": TEN, "copies": 61, "power": 38, "clock": 210}),
    ("gpu-busy-doing-nothing", bare, A100, {"util": TEN, "power": 79, "limit": 400}),
    ("gpu-busy-doing-nothing", rocm, "", {"util": 100, "copies": 0, "power": 158}),
    ("gpu-bound-by-pcie", scrape, A40, {"util": 45, "sm": 18, "tensor": 3, "dram": 9, "rx": 0.4, "tx": 21, "power": 110}),
    ("gpu-computes-without-tensor-cores", scrape, A30, {"sm": 86, "tensor": 0.5, "dram": 21, "fp32": 69}),
    ("gpu-held-and-idle", csv, A100, {"util": [0] * 70, "power": 62, "limit": 400, "held": 61000}),
    ("gpu-held-and-idle", scrape, H100, {"util": [0] * 70, "power": 112, "held": 71000}),
    ("gpu-clock-low-under-load", scrape, H100, {"util": 99, "clock": 345, "most": 1980, "power": 140, "sm": 88, "tensor": 41}),
    ("hw-slowdown-active", scrape, A100, {"util": 99, "clock": 420, "most": 1410, "power": 110, "reasons": 0x8}),
)  # fmt: skip
WELL: tuple[tuple[str, Callable[[str, Figures], str | list[Observation]], str, Figures], ...] = (
    ("training at its power limit", scrape, H100, {"util": 100, "power": 698, "sm": 95, "tensor": 58, "dram": 41, "reasons": 0x4}),
    ("training", dcgmi, A100, {"util": TEN, "power": 381, "sm": 91, "tensor": 52, "dram": 38}),
    ("FP8 training", nvml, H200, {"util": 98, "power": 655, "limit": 700, "sm": 89, "tensor": 44, "dram": 47}),
    ("decoding at few SMs", scrape, H100, {"util": 99, "power": 330, "sm": 24, "tensor": 3, "dram": 64}),
    ("decoding of a small batch", scrape, L4, {"util": 97, "power": 61, "sm": 38, "tensor": 2, "dram": 71}),
    ("decoding, over a window", capture, H100, {"util": 98, "power": 48, "sm": 30, "tensor": 4, "dram": 58}),
    ("a full load without counters", csv, A100, {"util": 100, "copies": 44, "power": 396, "limit": 400}),
    ("little power while memory is read", csv, H100, {"util": TEN, "copies": 9, "power": 230, "limit": 700}),
    ("registers alone at half of the power", csv, H100, {"util": TEN, "copies": 0, "power": 372, "limit": 700}),
    ("few warps of a simulation", dcgmi, "", {"util": TEN, "sm": 95, "warps": 19, "tensor": 0, "dram": 14}),
    ("few warps with full tensor cores", dcgmi, "", {"util": TEN, "sm": 93, "warps": 14, "tensor": 52, "dram": 31}),
    ("a full load on AMD", amd, "", {"util": 100, "copies": 38, "power": 702, "limit": 750}),
    ("a small card at full load", csv, T4, {"util": 100, "copies": 52, "power": 68, "limit": 70}),
    ("an instance that works", mig, A100, {"engine": 99, "sm": 88, "tensor": 46, "dram": 30, "held": 29000}),
    ("violations of the power limit at full load", violations, A100, {"util": TEN, "power": 398, "pviol": 97, "tviol": 0}),
    ("decoding, by GPM", gpm, H200, {"util": TEN, "power": 360, "sm": 28, "tensor": 4, "dram": 66, "fp32": 2}),
    ("decoding and prefill in turns", csv, H100, {"util": 100, "copies": 60, "power": [641, 655, 290, 281, 640, 295] * 3, "limit": 700}),
    ("a warm-up", scrape, H100, {"util": WARM, "power": 610, "sm": 92, "tensor": 50, "dram": 35}),
    ("one look at an idle server", csv, A100, {"util": 0, "power": 61, "limit": 400, "held": 61000}),
    ("an empty GPU", scrape, H100, {"util": [0] * 70, "power": 70, "held": 4}),
    ("exposed communication beside work", scrape, H100, {"util": 99, "power": 520, "sm": 71, "tensor": 33, "dram": 30, "nvlink": 190}),
    ("vision at half of the tensor cores", scrape, A100, {"util": 96, "power": 310, "sm": 82, "tensor": 27, "dram": 55}),
    ("data processing that is bound by memory", scrape, A100, {"util": 99, "power": 270, "sm": 70, "tensor": 0, "dram": 68, "fp32": 14}),
    ("an instance that works, by dcgmi", instances, A30, {"engine": TEN, "sm": 88, "tensor": 42, "dram": 30}),
    ("traffic of half a link that nobody told, beside memory that is read", links, H100, {"util": TEN, "copies": 44, "power": 512, "rx": 13.1, "tx": 0.2}),
    ("as much traffic both ways of a larger GPU at work", links, H100, {"util": TEN, "copies": 44, "power": 512, "rx": 22.1, "tx": 21.9}),
    ("half of that traffic both ways", links, L40S, {"util": TEN, "copies": 44, "power": 183, "rx": 12.1, "tx": 11.9}),
    ("clocks of a full load", clocks, A100, {"util": TEN, "copies": 48, "power": 391, "clock": 1290}),
    ("a full load without a header", bare, A100, {"util": TEN, "power": 379, "limit": 400}),
    ("a program that works, by pmon", pmon, "", {"util": TEN, "copies": 33}),
    ("half busy with some traffic", scrape, A40, {"util": 45, "sm": 30, "tensor": 12, "dram": 9, "rx": 0.4, "tx": 4, "power": 150}),
    ("molecular dynamics", dcgmi, A100, {"util": TEN, "sm": 96, "tensor": 0, "dram": 30, "fp32": 57, "power": 340}),
    ("fluid dynamics in double precision", scrape, A100, {"util": 99, "sm": 97, "tensor": 0, "dram": 36, "fp64": 81, "power": 301}),
    ("requests by chance, never full", csv, L40S, {"util": [0, 71, 18, 35, 71, 0, 44, 12, 66, 3, 58, 71, 0, 27], "power": 147, "limit": 350}),
    ("a small card at its own limit, by its violations", violations, T4, {"util": TEN, "power": 69, "pviol": 100, "tviol": 0}),
    ("a limit that is a little lower", scrape, H100, {"util": 100, "power": 598, "limit": 600, "sm": 94, "tensor": 52, "clock": 1650, "most": 1980}),
    ("half busy at one look", smi_dmon, A100, {"util": 46, "copies": 12, "power": 170}),
)  # fmt: skip


def answered(query: Query) -> str:
    """What stands first in the answer to a sentence about a machine that nobody looked at."""
    d = diagnose(derive(query.observations), load())
    reply = answerer(query.intent).answer(Turn(query, query.lang, load(), d))
    shown = reply.shown or reply.diagnosis
    return reply.headline or (shown.verdict.text.in_(reply.lang) if shown is not None else "")


def judged(source: Callable[[str, Figures], str | list[Observation]], model: str, figures: Figures) -> Diagnosis:
    given = source(model, figures)
    return diagnose(parse_text("input", given) if isinstance(given, str) else given, load())


# What people state of a GPU, and what that makes of it: in both languages, the model by its name.
SAID = {
    "nvidia-smi shows 100 % utilization but power is only 130 W on an H100, what does it mean?": "busy_idle",
    "my A100 draws 90 W at 100 % utilization": "busy_idle",
    "8 H100s all at 100 % and 120 W, what is wrong": "busy_idle",
    "8 张 H100 全是 100% 但是功耗只有 120W，什么问题": "busy_idle",
    "H100 卡都是 100% 功耗 130W": "busy_idle",
    "16 H200s all sitting at 99% and 150W": "busy_idle",
    "SM active 0.12 util 1.0 on H100": "busy_idle",
    "gpu goes 97% then 0%": "in_waves",
    "GPU drops to 0% every few seconds": "in_waves",
    "GPU usage goes from 100 to 0 constantly": "in_waves",
    "my card is at 99% one second and 0% the next": "in_waves",
    "GPU 每隔几秒掉到 0%": "in_waves",
    "gpu 利用率在 0 和 100 之间来回跳": "in_waves",
    "why is gpu 3 at 100% with 120 W on H100": "busy_idle",
    "V100 44W at 100% util": "busy_idle",
    "99 % util, 131 W of power, SM active 7 %": "busy_idle",
    "gpu utilization 99 % sm active 8 % tensor 1 % dram 2 %": "busy_idle",
    "H100 利用率 99%，功耗 131W，SM 活跃度 7%": "busy_idle",
    "nvidia-smi 显示 100% 利用率但 H100 功耗只有 130W，是什么意思？": "busy_idle",
    "利用率 99%，SM 活跃度 8%，tensor 1%": "busy_idle",
    "tensor active is 3 % and SM active 90 % while util is 99 %, fp32 active 70 %": "fp32_bound",
    "H100 at 98% util, dram active 66%, sm active 30% - is that a problem?": "memory_bound",
    "gpu util 99%, tensor active 55%, power 690 W on H100, is that good?": "tensor_bound",
    "H100 at 99% util, 700 W, is that healthy?": "working",
}
# Of a GPU that is busy and slow, with nothing that tells which: the answer is what utilisation is.
ASKED = (
    "gpu is 99 % busy but training is slow, why?", "why is my gpu power low at full utilization?", "gpu busy but doing nothing",
    "GPU 利用率 99% 但训练很慢，为什么？", "功耗低但利用率满是什么原因？",
)  # fmt: skip


# What stated counters mean by the kind of work, the model and the phase: words of the first line, that answer what was asked.
MEANT = {
    "T4 stuck at 585 MHz and 70 W": "Usual at full load",
    "H100 at 60C, 700W, but SM clock 900 MHz, ok?": "Not usual: an SM clock of 900 MHz",
    "H100 at 60C, 700W, SM clock 1600 MHz, ok?": "Usual at full load",
    "A100 400W SM clock 600 MHz, fine?": "No: SM clock",
    "H100 功耗 700W，SM 频率 800 MHz，正常吗": "不到最高时钟 1980 MHz 的一半",
    "L4 功耗 72W 频率只有 600MHz 是不是坏了": "满载时属常见",
    "A10 at 150 W and 600 MHz, 88 C, is it throttled?": "Not in order",
    "clocks are 1980 MHz but power is only 120 W, is the gpu throttled?": "Not throttled",
    "clock is at max but power is only 120 W, throttled?": "Not throttled",
    "H100 频率1980MHz，功耗只有120W，是不是降频了？": "没有降频",
    "H100 at 1980 MHz and 120 W and 90 C, is it throttled?": "90 °C",
    "tensor active 9 % on an H200 while we pretrain, is that fine?": "Tensor active of 9 %: poor for training",
    "SM active 22 % while decoding with sglang, ok?": "SM active of 22 %: it depends for decoding",
    "dram active 11 % in decode, normal?": "poor for decoding",
    "GPU util 100 % at 160 W, is it ok?": "Next to no work on H100",
    "power draw 398 W, limit 400 W on an A100, is that bad?": "At the limit",
    "utilization is 0 while the model is compiling, normal?": "Usual while a job starts",
    "four jobs share one gpu and all are slow": "4 programs share the GPU",
    "DCGM_FI_PROF_SM_ACTIVE is 0.31, should I worry?": "SM active of 31 %",
    "夜间利用率为 0 正常吗": "推理服务没有请求时属常见",
    "训练时 tensor 活跃度 7%，正常吗": "较差（训练）",
    "MIG 实例利用率 98% 但是很慢": "MIG 实例只有 profiling 字段能说明",
    "平均利用率 40%，浪费了多少卡时": "60 % 的时间",
    "one process holds 60 GB and does nothing, is that waste?": "idle although given to a workload",
    "GPU util fluctuates 0-100-0-100 during training, what's causing it": "It works in waves",
    "DRAM active is 0.85 and SM active 0.4 in vLLM decode, anything to gain?": "bound by memory bandwidth",
    "Intel Max 1550 at 99% util and 158 W": "Whether it works depends on the model",
    "MI300X GFX 100%，功耗 180W": "几乎没有有效计算",
    "the others draw 130 W and gpu 3 draws 610 W": "the one that works is the rank that they wait for",
    "7 张 130W，1 张 610W，都是 100%，哪个 rank 慢？": "在干活的那一张正是大家在等的 rank",
    "Jupyter 占着 8 张卡不用，怎么办": "占卡不用的用户",
    "how do I tell busy from useful work?": "Read power, SM active",
    "clocks fall to 1200 MHz under load at 700 W, is that throttling?": "Usual at full load",
    "满载时频率只有 1200 MHz，功耗 700 W，是故障吗": "满载时属常见",
    "gpu util 100% memory util 0% power 85W on A100, hung?": "memory stands still",
    "nvidia-smi dmon shows sm 100 mem 0, what does it mean": "next to no work",
    "nvidia-smi dmon 里 sm 100 mem 0 是什么意思": "几乎没有有效计算",
    "three people use the same H100 and each is slow": "3 programs share the GPU",
    "3个用户共用一张A100，都很慢": "3 个程序共用该 GPU",
    "our gpus read 100% in grafana all day but the loss barely moves, why?": "Busy 100 % is not working yet",
    "功耗曲线像心电图，是不是有问题": "时忙时闲",
    "MI300X GFX 活动 100% 但功耗 180W，是不是卡住了": "几乎没有有效计算",
    "推理时功耗只有 20%，正常吗": "对解码也偏低",
    "why is SM active only 50% when util says 99": "SM active of 50 %: fair",
    "所有 rank 都 100%，但吞吐掉了一半": "还不等于在工作",
    "how many gpu hours did we waste this week at 30% utilization on 128 gpus": "15,052.8 GPU-hours in 168 h",
    "限制到 400W 的 H100 会慢多少": "约损失",
    "8 H100s all at 100 % and 120 W, what is wrong": "8 GPUs: busy 100 % (120 of 700 W): a kernel is on the GPU all the time",
    "is 300W on an A100 ok": "Fine: 300 W against the limit of A100 SXM4",
    "is 650 W on an H100 too much": "Fine: 650 W against the limit of H100",
    "what's a normal power for an idle H100": "H100 and H200 45 to 90 W",
    "what is a good tensor active for H100 training": "Good: 38 .. 100 %",
    "tensor active 多少算正常": "良好：38 .. 100 %",
    "is fp32 active 60% and tensor 0% a problem": "FP32 active 60 %, tensor active 0 %: computing in FP32",
    "有一张卡的利用率比其他卡低": "某个 GPU 比同伴慢",
}


# What a counter tells and what it does not: asked as it stands, with a figure as an example or without; and the page that answers.
TOLD_BY = {
    "GPU占用率100%是什么意思": "GPU 利用率",
    "GPU占用率和SM占用率有什么区别？": "GPU 利用率（GPU-Util）、SM 占用率",
    "how many watts does an A100 draw under full load?": "Power of a GPU at full load: Near its power limit",
    "H100满载功耗应该是多少瓦？": "满载 GPU 的功耗",
    "how can I tell if the GPU is waiting for the CPU?": "Whether the GPU waits for the CPU",
    "怎么看 GPU 是不是在等 CPU": "GPU 是否在等 CPU",
    "GPU power drops to 90W every 20 seconds for 3 seconds": "Power or utilization that drops at equal distances",
    "can I get DCGM profiling metrics on a GeForce card?": "No: DCGM's profiling fields",
    "how do I measure whether my training is PCIe bound?": "Whether a job is bound by PCIe",
    "mean utilization is 60%: does that mean 60% of the gpu is used?": "Busy and working",
    "could a card show full utilization while nothing useful happens?": "Busy and working",
    "which metrics reveal that gpus only wait": "Busy and working",
    "利用率 99% 就代表 GPU 被充分利用了吗": "忙碌与工作",
    "does memory utilization in nvidia-smi mean how full the memory is": "Memory utilization",
    "显存利用率和显存占用有什么区别": "显存利用率",
    "is low power draw a sign that my gpus are waiting?": "Power as a sign of work",
    "看功耗能判断 GPU 在干活吗": "用功耗判断是否在工作",
    "lots of fp32 and no tensor core use, what does that say": "FP32 or FP64 active beside idle tensor cores",
    "tensor 很低 fp32 很高说明什么": "FP32/FP64 活跃而 tensor core 空闲",
    "how much throughput do we lose if we cap H100s at 450 W": "About 14 to 20 %",
    "锁频到 1200 MHz 会慢多少": "降频的代价",
    "we sit at 35% MFU on 64 H100s, where does the rest go?": "Where the rest of the MFU goes",
    "MFU 只有 20%，问题出在哪": "MFU 损失在哪里",
    "how can I tell whether a card is really computing": "Read power, SM active",
    "how do I know if my GPUs are actually computing or just waiting on nccl": "Read power, SM active",
    "怎么看 GPU 是不是在空转": "用 dcgmi dmon",
    "怎么证明 100% 利用率是 NCCL 自旋造成的": "用 dcgmi dmon",
    "tell me which jobs waste gpus": "Count idle GPUs of a cluster",
    "could my dataloader be the reason for 55% utilization": "Run the loop on one batch",
    "why does my GPU util look like a square wave?": "Power or utilization that drops at equal distances",
    "60% of gpu memory is used, does that mean the gpu is doing work?": "No: memory in use says only",
    "显存占了 60%，说明 GPU 在干活吗": "显存占用与是否在干活",
    "does low GPU power mean the job is bottlenecked by CPU?": "Power as a sign of work",
    "how long should gpu be idle before I kill the job": "Not blindly",
    "does MIG hide how busy the gpu is": "Utilization of a MIG instance",
}


@each("said", TOLD_BY)
def test_what_a_counter_tells_is_answered_from_its_page(said: str) -> None:
    assert answered(understand(said)).startswith(TOLD_BY[said])


def test_every_page_that_a_phrase_names_is_there() -> None:
    assert [p.page for p in lexicon().phrases if p.page and topic(p.page) is None] == []


# Names of a part that are names of more: no share, and nothing else of a GPU's work beside them.
NO_COUNTERS = (
    "dram errors 3",
    "SM 90 architecture",
    "dram 纠错 12 次",
    "SM active 130 %",
    "we train in fp32 on 16 nodes",
)


@each("said, fact", [
    ("8 cards at 90 % of memory", "gpu.memory.share"), ("gpu 3 at 97% memory, others at 20%", "gpu.memory.share"), ("gpu at 100% fan speed", "gpu.fan.speed"),
])  # fmt: skip
def test_a_share_of_something_else_is_no_utilisation(said: str, fact: str) -> None:
    assert {o.fact for o in understand(said).observations} == {fact}


@each(
    "said",
    (
        "util goes up and down between 20 and 95",
        "gpu power is between 94 and 95",
        "gpus run at 94 and 95",
        "util swings between 85 and 95",
    ),
)
def test_two_values_of_a_reading_are_no_codes(said: str) -> None:
    query = understand(said)
    assert not query.slots.xid
    assert ("gpu.window.waves" in {o.fact for o in query.observations}) is ("20" in said)
    assert understand("difference between 94 and 95").slots.xid == (94, 95)


def test_what_several_gpus_have_is_said_once_for_all_of_them() -> None:
    """The power named in the next clause is that of each of them; of one among them it is not."""
    counted = {o.fact: o.subject.id for o in understand("8 张 H100 全是 100%，功耗只有 120W").observations}
    assert len(set(counted.values())) == 1
    one = {o.fact: o.subject.id for o in understand("8 cards at 100%, one at 80 W").observations}
    assert one["gpu.utilization.core"] != one["gpu.power.draw"]


@each("said", NO_COUNTERS)
def test_a_part_without_a_share_is_no_counter(said: str) -> None:
    assert not [o for o in understand(said).observations if o.fact.startswith("gpu.activity.")]


@each("said", MEANT)
def test_stated_counters_are_judged_for_what_is_at_work(said: str) -> None:
    assert MEANT[said] in answered(understand(said))


def test_figures_of_the_head_are_not_told_again_beside_it() -> None:
    assert "Told beside it" not in answered(understand("MI300X at GFX 100 % and 180 W"))
    assert "Told beside it: the core temperature" in answered(understand("H100 at 100 % util, 120 W and 60 C"))


@each("said", SAID)
def test_readings_in_a_sentence_are_read_together(said: str) -> None:
    query = understand(said)
    told = [o.value for o in derive(query.observations) if o.fact == "gpu.work.class"]
    assert (query.intent in (Intent.DIAGNOSE, Intent.VERDICT), told) == (True, [SAID[said]])


@each("asked", ASKED)
def test_busy_and_slow_is_understood(asked: str) -> None:
    assert understand(asked).symptoms[:1] == ("busy-but-slow",)


def test_there_are_sets_of_each_source() -> None:
    assert len(SICK) + len(WELL) >= 40
    sources = {
        scrape,
        queried,
        mig,
        instances,
        pmon,
        links,
        clocks,
        bare,
        rocm,
        dcgmi,
        smi_dmon,
        violations,
        gpm,
        csv,
        smi_exporter,
        amd,
        capture,
        nvml,
    }
    assert {s[1] for s in SICK} == sources


@each("planted", SICK, ids=lambda p: f"{p[0]} {p[1].__name__} {p[2]} {p[3]}")
def test_what_it_does_stands_in_the_first_line(
    planted: tuple[str, Callable[[str, Figures], str | list[Observation]], str, Figures],
) -> None:
    name, source, model, figures = planted
    d = judged(source, model, figures)
    first = d.leads[0]
    assert first.rule.id == name
    assert d.verdict.state is not State.OK
    title = first.title.en[1:]
    assert title in d.verdict.text.en
    several = any(isinstance(v, Sequence) for v in figures.values()) or source is capture
    assumed = source is links or (source is dcgmi and not model) or "without-tensor" in name or "lowered" in name
    told = name in ("gpu-clock-low-under-load", "hw-slowdown-active")  # by the driver, or by the clock itself
    assert several or first.grade != "confirmed" or told
    assert not assumed or first.grade == "probable"


def test_a_rank_that_works_less_is_named_where_nothing_else_is_known_of_it() -> None:
    """dmon has no model and no limit: of GPUs without a class the figures stand beside those of their peers."""
    head = "# gpu    pwr     sm    mem\n# Idx      W      %      %\n"
    told = parse_text(
        "input",
        head
        + "".join(f"    {g} {262 if g == 5 else 640} 99 {20 if g == 5 else 50}\n" for _ in range(12) for g in range(8)),
    )
    trainer = Subject(Scope.PROCESS, "4205", told[0].subject.up(Scope.NODE))
    source = Source("processes-snapshot", "/proc")
    told += [
        Observation("process.uses_gpu", trainer, "index:5", source=source),
        Observation("process.env", trainer, ("RANK=13",), source=source),
    ]
    d = diagnose(told, load())
    assert d.leads[0].rule.id == "gpu-works-less-than-peers"
    assert (
        "busy 99 % (262 W), 40.9 % of its peers: it works less than the other GPUs of the node: rank 13"
        in d.verdict.text.en
    )


def test_the_share_of_a_program_on_several_gpus_is_that_of_none_of_them() -> None:
    head = "# gpu         pid   type     sm    mem    command\n# Idx           #    C/G      %      %    name\n"
    looks = "    0   4101  C   48  20  python\n    0   5202  C   45  18  vllm\n    1   4101  C   98  41  python\n" * 2
    d = diagnose(parse_text("input", head + looks), load())
    assert "python (pid 4101), vllm (pid 5202) 45 %" in d.verdict.text.en


def test_what_several_gpus_lose_is_told_in_all() -> None:
    one = scrape(H100, {"util": TEN, "power": 131, "sm": 7, "tensor": 1, "dram": 2})
    other = one.replace('gpu="0"', 'gpu="1"').replace("000000000001", "000000000002")
    d = diagnose(parse_text("input", one + other), load())
    assert [f["impact"]["gpu_hours_a_day"] for f in plain(d)["findings"]] == [22.3, 22.3]
    page = view(d, "en")
    assert [b.impact for b in page.blocks] == [
        "explains up to 93.0 % of this GPU's time at most, 44.6 GPU-hours a day in all"
    ]


def test_what_two_scrapes_tell_is_a_row_of_samples() -> None:
    """A counter of time tells by two readings, in files of their own too: 390 of 600 s here, in ns."""
    took = {"util": 100, "power": 229, "clock": 825, "most": 1410, "tensor": 30}
    files = [
        "".join(
            f"{line} {1_790_000_000_000 + 600_000 * i}\n" for line in scrape(A100, {**took, "heat": heat}).splitlines()
        )
        for i, heat in enumerate((4e9, 394e9))
    ]
    d = diagnose([o for i, text in enumerate(files) for o in parse_text(f"{i}.prom", text)], load())
    assert "throttled 65 % of the time, 41.5 % of the clock lost: heat holds its clocks down" in d.verdict.text.en


def test_load_by_chance_is_seldom_taken_for_waves() -> None:
    """Uniform load, which requests are at worst; and waves of six samples, whichever part of one a sample falls on."""
    chance = Random(7)
    taken = sum(in_waves([100 * chance.random() for _ in range(n)]) for n in (10, 20, 30) for _ in range(200))
    assert taken <= 48
    for phase in range(6):
        edges = [97 * sum((i + phase / 6 + k / 20) % 6 < 3 for k in range(20)) / 20 for i in range(12)]
        assert in_waves(edges)


def test_scrapes_between_waves_are_told_as_waves() -> None:
    files = [
        "".join(
            f"{line} {1_790_000_000_000 + 15_000 * i}\n"
            for line in scrape(H100, {"util": 100, "sm": sm, "tensor": sm / 2, "power": 8 * sm}).splitlines()
        )
        for i, sm in enumerate([91, 92, 6] * 5)
    ]
    d = diagnose([o for i, text in enumerate(files) for o in parse_text(f"{i}.prom", text)], load())
    assert "gpu-starved-in-waves" in {f.rule.id for f in d.leads}


GOOD: Figures = {"util": 98, "power": 640, "sm": 93, "tensor": 47, "dram": 50}
SPINS: Figures = {"util": 100, "power": 128, "sm": 98, "tensor": 0, "dram": 0.2}
FREE: Figures = {"util": 0, "power": 70, "sm": 0, "tensor": 0, "dram": 0}
CHANGES: list[tuple[list[Figures], str, str]] = [
    ([GOOD] * 8 + [SPINS] * 8, "degraded", ". Since 2026-09-21 14:17:20Z; until then: bound by tensor cores"),
    ([SPINS] * 8 + [GOOD] * 8, "ok", "bound by tensor cores, as matrix work should be. Since 2026-09-21 14:17:20Z; until then: busy and"),
    ([GOOD] * 6 + [FREE] * 12, "ok", "idle and free since 2026-09-21 14:16:20Z; until then: bound by tensor cores"),
    ([FREE] * 6 + [GOOD] * 8 + [SPINS] * 6, "degraded", ". Since 2026-09-21 14:20:20Z; until then: bound by tensor cores"),
    ([GOOD] * 3 + [SPINS] * 3, "degraded", ". Since 2026-09-21 14:14:50Z; until then: bound by tensor cores"),
    ([GOOD] * 7 + [SPINS] * 3, "degraded", ". Since 2026-09-21 14:16:50Z; until then: bound by tensor cores"),
    ([GOOD] * 14, "ok", ""),
    ([GOOD] * 6 + [SPINS] + [GOOD] * 8, "ok", ""),
]  # fmt: skip


@each("row, state, said, in_files", [(*case, in_files) for case in CHANGES for in_files in (False, True)])
def test_what_changed_is_told_with_its_time(row: Sequence[Figures], state: str, said: str, in_files: bool) -> None:
    """A GPU that is in one class and then in another is in the later one, and since when; one look among many is no change."""
    looks = [
        "".join(f"{line} {1_790_000_000_000 + 30_000 * i}\n" for line in scrape(H100, own).splitlines())
        for i, own in enumerate(row)
    ]
    texts = looks if in_files else ["".join(looks)]
    d = diagnose([o for i, text in enumerate(texts) for o in parse_text(f"{i}.prom", text)], load())
    assert d.verdict.state == state
    assert (said or "until then") in d.verdict.text.en if said else "until then" not in d.verdict.text.en
    assert ("此前：" in d.verdict.text.zh) is bool(said)


def test_the_last_of_a_few_looks_tells_what_a_gpu_does_now() -> None:
    """Of rows without times the order is that of the lines."""
    texts = [
        "".join(f"{line} {1_790_000_000_000 + 30_000 * i}\n" for line in scrape(H100, own).splitlines())
        for i, own in enumerate((SPINS, GOOD))
    ]
    d = diagnose([o for i, text in enumerate(texts) for o in parse_text(f"{i}.prom", text)], load())
    assert d.verdict.state == "ok"
    assert "Since 2026-09-21 14:13:50Z; until then: busy and doing next to nothing" in d.verdict.text.en
    row = judged(smi_dmon, H100, {"util": [99] * 12, "copies": [0] * 6 + [48] * 6, "power": [120] * 6 + [610] * 6})
    assert (
        "GPU 0: busy in the last 6 of 12 samples; before that: busy and doing next to nothing." in row.verdict.text.en
    )


def test_power_that_falls_tells_without_a_limit() -> None:
    """No limit lies below what a GPU drew a moment ago: a third of that at full utilisation is a wait."""
    head = "# gpu    pwr     sm\n# Idx      W      %\n"
    rows = "".join(f"    0  {480 if i < 8 else 130} 99\n" for i in range(12))
    d = diagnose(parse_text("input", head + rows), load())
    assert d.verdict.state == "degraded"
    assert "busy 99 % (130 W)" in d.verdict.text.en
    assert "In the last 4 of 12 samples; before that: at work." in d.verdict.text.en
    d = diagnose(parse_text("input", head + rows.replace(" 130 ", " 210 ")), load())
    assert d.verdict.state == "ok"


def test_what_would_tell_work_from_waiting_is_named_for_intel() -> None:
    head, row = "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W){}\n", "03:12:00.000, 0, 99.40, 152.00{}\n"
    d = diagnose(parse_text("input", head.format("") + row.format("")), load())
    assert "busy 99 % (152 W): whether that is work was not read (xpu-smi dump -m 0,1,11,17)" in d.verdict.text.en
    idle = head.format(", GPU EU Array Idle (%)") + row.format(", 96.70")
    assert (
        "busy 99 %, working 3.3 % (152 W): a kernel is on the GPU"
        in diagnose(parse_text("input", idle), load()).verdict.text.en
    )


def test_what_else_gpus_do_is_named_in_the_first_line() -> None:
    slow: Figures = {"util": 99, "power": 230, "sm": 90, "tensor": 20, "dram": 20, "clock": 600}
    waits: Figures = {"util": 97, "power": 280, "sm": 60, "tensor": 5, "dram": 12, "clock": 1980}
    text = "".join(
        scrape(H100, own).replace('gpu="0"', f'gpu="{n}"').replace("-000000000001", f"-00000000000{n}")
        for n, own in enumerate((slow, {**SPINS, "clock": 1980}, waits))
    )
    d = diagnose(parse_text("input", text), load())
    assert (
        ". Also: GPU 1 (GPU-7d0c1f2e-0000-4000-8000-000000000001): busy and doing next to nothing; GPU 2"
        in d.verdict.text.en
    )
    assert "：kernel 多在等待" in d.verdict.text.zh


def test_what_a_gpu_does_is_told_also_where_nothing_is_wrong() -> None:
    text = "".join(
        scrape(H100, own).replace('gpu="0"', f'gpu="{n}"').replace("-000000000001", f"-00000000000{n}")
        for n, own in enumerate((GOOD, SPINS, FREE))
    )
    d = diagnose(parse_text("input", text), load())
    query = understand("which gpu is idle?")
    reply = _work.idle(Turn(query, query.lang, load(), d))
    assert reply is not None
    assert "doing next to nothing. GPU 2" in reply.headline
    assert reply.headline.endswith("idle and free.")
    query = understand("what is GPU 0 doing?")
    assert "bound by tensor cores" in answerer(query.intent).answer(Turn(query, query.lang, load(), d)).headline


def test_gpus_that_are_held_and_idle_cost_hours() -> None:
    one = scrape(H100, {**FREE, "held": 60_000})
    eight = "".join(one.replace('gpu="0"', f'gpu="{n}"').replace("-000000000001", f"-00000000000{n}") for n in range(8))
    looks = "".join(f"{line} {1_790_000_000_000 + 30_000 * i}\n" for i in range(10) for line in eight.splitlines())
    d = diagnose(parse_text("input", looks), load())
    assert (
        "8 GPUs (0-7): busy 0 %, working 0 % (70 of 700 W): idle while memory is held (0.6 GPU-hours in the samples)."
        in d.verdict.text.en
    )
    assert "（采样期间共 0.6 GPU 小时）" in d.verdict.text.zh


def test_gpus_that_are_busy_for_a_part_of_the_time_are_told() -> None:
    """One beside others that are busy and hold as much, and all of a node; of one that no program holds nothing is said."""

    def node(*figures: Figures) -> Diagnosis:
        own = (
            scrape(H100, f).replace('gpu="0"', f'gpu="{n}"').replace("-000000000001", f"-00000000000{n}")
            for n, f in enumerate(figures)
        )
        return diagnose(parse_text("input", "".join(own)), load())

    some: Figures = {"util": 24, "power": 210, "sm": 20, "tensor": 9, "dram": 6, "held": 70_000}
    good = {**GOOD, "held": 70_000}
    d = node(good, good, good, some, good)
    assert d.verdict.state == "ok"
    assert "busy 24 %, working 20 % (210 of 700 W): for a part of the time only, beside others" in d.verdict.text.en
    d = node(some, some, some, some)
    assert (
        "4 GPUs (0-3): busy 24 %, working 20 % (210 of 700 W): for a part of the time only, as where"
        in d.verdict.text.en
    )
    assert "part of the time" not in node({**some, "held": 300}).verdict.text.en


def test_what_moves_data_is_no_spin() -> None:
    """1 % of the bandwidth of an H100 are 33 GB/s: nothing that waits reads as much. GPUs that do the same have one cause."""
    own = (
        scrape(H100, {"util": 97, "power": 188, "sm": 16, "tensor": 0.9, "dram": dram})
        .replace('gpu="0"', f'gpu="{n}"')
        .replace("-000000000001", f"-00000000000{n}")
        for n, dram in enumerate((0.99, 1.02, 1.04))
    )
    d = diagnose(parse_text("input", "".join(own)), load())
    assert "3 GPUs" in d.verdict.text.en
    assert "too small or too far apart" in d.verdict.text.en


def test_one_idle_gpu_beside_busy_ones_is_told_where_its_memory_was_not_read() -> None:
    head = "# gpu    pwr     sm    mem\n# Idx      W      %      %\n"
    row = "".join(f"    {i} {560 if i != 5 else 72} {98 if i != 5 else 0} {45 if i != 5 else 0}\n" for i in range(8))
    d = diagnose(parse_text("input", head + row * 2), load())
    assert (
        "GPU 5: busy 0 % (72 W): idle beside 7 that are busy; whether memory is held there was not read."
        in d.verdict.text.en
    )
    d = diagnose(parse_text("input", head + row.replace(" 98 45", " 0 0") * 2), load())
    assert "beside" not in d.verdict.text.en


def test_what_draws_more_than_its_model_is_built_for_has_another_limit() -> None:
    d = judged(scrape, H100, {"util": 100, "power": 780, "sm": 97, "tensor": 60, "dram": 27})
    assert "(780 W)" in d.verdict.text.en


@each("used, held", [(3162, False), (41203, True)])
def test_what_an_ascend_chip_keeps_for_itself_is_held_by_nobody(used: int, held: bool) -> None:
    table = (
        "| npu-smi 24.1.rc2                 Version: 24.1.rc2                                             |\n"
        "| 0     910B3               | OK            | 94.6        45                0    / 0             |\n"
        f"| 0                         | 0000:C1:00.0  | 0           0    / 0          {used} / 65536         |\n+===+\n"
    )
    kinds = {o.value for o in derive(parse_text("input", table)) if o.fact == "gpu.work.class"}
    assert ("held_idle" in kinds) is held


def test_memory_controllers_of_amd_tell_the_bandwidth() -> None:
    d = judged(rocm, "", {"util": 100, "copies": 83, "power": 412})
    assert "GPU amd:card0: busy 100 % (412 W): bound by memory bandwidth" in d.verdict.text.en


def test_the_second_die_of_a_package_draws_what_the_package_does() -> None:
    """rocm-smi names the power of the first die of an MI250 alone: a wait of both is one of both. Of four packages of one die nothing is made up."""
    head = f"{'=' * 20} ROCm System Management Interface {'=' * 20}\nGPU  Temp   AvgPwr  SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%\n"
    own = ("118.0W  1700Mhz  1600Mhz  0%   auto  560.0W", "N/A     1700Mhz  1600Mhz  0%   auto  0.0W  ")

    def said(*rows: str) -> str:
        table = "".join(f"{n}    45.0c  {row}   70%  100%\n" for n, row in enumerate(rows))
        return diagnose(
            parse_text("input", f"{head}{table}{'=' * 20} End of ROCm SMI Log {'=' * 20}\n"), load()
        ).verdict.text.en

    assert "4 GPUs: busy 100 % (118 of 560 W): a kernel is on the GPU all the time" in said(*own, *own)
    assert "3 GPUs" in said(own[0], own[0], own[0], own[1])


def test_gpus_that_do_the_same_lie_on_one_side_of_a_bound() -> None:
    """Traffic of 19 to 22 GB/s, around 65 % of a link of generation 4."""
    figures = {"util": 100, "sm": 48, "tensor": 12, "dram": 21}
    one, *others = (
        dcgmi("", {**figures, "rx": rx, "tx": rx}).replace("GPU 0", f"GPU {i}")
        for i, rx in enumerate((21.1, 20.2, 20.9, 20.8))
    )
    d = diagnose(parse_text("input", one + "".join(text.split("ID\n")[1] for text in others)), load())
    assert "4 GPUs (0-3): busy 100 %" in d.verdict.text.en
    assert {f.rule.id for f in d.leads[:1]} == {"gpu-exchanges-over-pcie"}


def test_an_instance_of_a_pod_with_parts_of_several_gpus_has_an_owner() -> None:
    """Instances have the same number on each GPU; one GPU is named by its address, one by its UUID alone."""
    own = (
        mig(H100, {"util": 0}).replace("DEV_GPU_UTIL", "PROF_GR_ENGINE_ACTIVE").replace("}", ',exported_pod="train-0"}')
    )
    other = own.replace('gpu="0"', 'gpu="1",pci_bus_id="00000000:2C:00.0"').replace("000000000001", "000000000002")
    third = (
        other.replace('"1"', '"2"')
        .replace(":2C:", ":3D:")
        .replace("000000000002", "000000000003")
        .replace("train", "serve")
    )
    d = diagnose(parse_text("input", own + other + third), load())
    titles = [f.title.en for f in d.findings if f.rule.id == "mig-instance-idle"]
    assert sorted(t.rpartition(", ")[2] for t in titles) == ["pod serve-0", "pod train-0", "pod train-0"]


@each("planted", WELL, ids=lambda p: p[0])
def test_a_healthy_load_is_quiet(
    planted: tuple[str, Callable[[str, Figures], str | list[Observation]], str, Figures],
) -> None:
    d = judged(*planted[1:])
    assert d.verdict.state is (State.UNKNOWN if planted[1] is amd else State.OK), d.verdict.text.en
    assert not [f for f in d.findings if f.counts]
