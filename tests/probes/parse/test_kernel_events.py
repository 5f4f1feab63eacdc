"""Each kind of event from the lines that print it, alone and amid a log that the scanner reads."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest

from knowledge.facts import vocabulary
from knowledge.observation import Event, Observation, Scalar, Status
from probes.base import Context, lines_of
from probes.parse import kernel_log
from probes.parse.kernel_log import parse
from probes.scan import scan
from tests.cases import each

FILLER = "Mar  3 12:00:00 gpu-07 systemd[1]: Started session-{n}.scope - Session {n} of User alice."


@dataclass(frozen=True)
class Story:
    """Lines, and the one event of `fact` that they tell."""

    fact: str
    lines: str
    subject: str = ""
    fields: dict[str, Scalar] = field(default_factory=dict)
    code: int | None = None
    count: int = 1


STORIES = [
    Story("pci_reset_failed", "[65.5] vfio-pci 0000:2a:00.0: not ready 65535ms after bus reset; giving up", "pci 0000:2a:00.0", {"reset": "bus reset"}),
    Story(
        "gpu_power_state_stuck",
        "[9.0] nvidia 0000:5d:00.0: can't change power state from D3cold to D0 (config space inaccessible)", "gpu 0000:5d:00.0",
    ),
    Story(
        "iommu_fault",
        "[9.0] DMAR: [DMA Write NO_PASID] Request device [9b:00.0] fault addr 0x3fffc000 [fault reason 0x05] PTE Write access is not set\n"
        "[9.1] DMAR: [DMA Read NO_PASID] Request device [9b:00.0] fault addr 0x3fffd000 [fault reason 0x06] PTE Read access is not set",
        "pci 0000:9b:00.0", {"device": "0000:9b:00.0"},
    ),
    Story(
        "iommu_fault",
        "[8.0] NVRM: GPU at PCI:0000:9b:00: GPU-00000000-0000-0000-0000-0000000000aa\n"
        "[9.0] nvidia 0000:9b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0x3fffc000 flags=0x0020]", "gpu 0000:9b:00.0",
    ),
    Story(
        "iommu_fault",
        "[9.0] arm-smmu-v3 arm-smmu-v3.9.auto: event: F_TRANSLATION client: 0009:01:00.0 sid: 0x10100 ssid: 0x0 iova: 0x0 ipa: 0x0",
        "pci 0009:01:00.0",
    ),
    Story(
        "pcie_link_down",
        "[9.0] pcieport 0000:a0:01.0: broken device, retraining non-functional downstream link at 2.5GT/s\n"
        "[9.1] pcieport 0000:a0:01.0: retraining failed",
        "pci 0000:a0:01.0", {"what": "training_failed"},
    ),
    Story("pcie_link_down", "[9.0] pcieport 0000:5c:01.0: pciehp: Slot(5): Power fault", "pci 0000:5c:01.0", {"what": "power_fault", "slot": "5"}),
    Story(
        "driver_load_failed", "[1.0] pci 0000:5d:00.0: BAR 1 [mem size 0x2000000000 64bit pref]: can't assign; no space", "",
        {"reason": "bar_invalid", "device": "0000:5d:00.0"},
    ),
    Story(
        "host_memory_error",
        "[9.0] Memory failure: 0x3fff8: Killing python3:3311 due to hardware memory corruption", "",
        {"severity": "uncorrected", "page": "0x3fff8", "location": None},
    ),
    Story("host_memory_error", "[9.0] MCE: Killing python3:3311 due to hardware memory corruption fault at 7f1c2e400000", "", {"severity": "uncorrected"}),
    Story("soft_lockup", "[9.0] watchdog: BUG: hard lockup on CPU 44", "", {"kind": "hard", "cpu": 44}),
    Story("driver_load_failed", "[9.0] NVRM: The system BIOS may have misconfigured your GPU.", "", {"reason": "bar_invalid"}),
    Story("nvswitch_lost", "[9.0] nvidia-nvswitch1: NVSwitch device was fallen off bus, wont be usable", "nvswitch nvidia-nvswitch1"),
    Story("nmi", "[9.0] Uhhuh. NMI received for unknown reason 3d on CPU 0.", "", {"kind": "unknown", "reason": "3d", "cpu": 0}),
    Story("nmi", "[9.0] NMI: PCI system error (SERR) for reason b1 on CPU 4.", "", {"kind": "serr", "cpu": 4}),
    Story(
        "filesystem_stall",
        "[9.0] LustreError: 167-0: scratch-MDT0000-mdc-ffff9f: This client was evicted by scratch-MDT0000; in progress operations "
        "using this service will fail.",
        "", {"filesystem": "lustre", "server": "scratch-MDT0000", "state": "evicted"},
    ),
    Story(
        "filesystem_stall", "[9.0] CIFS: VFS: \\\\filer-2 has not responded in 180 seconds. Reconnecting...", "",
        {"filesystem": "cifs", "server": "filer-2", "state": "lost"},
    ),
    Story(
        "link_carrier", "[9.0] bond0: (slave ens1f0np0): link status definitely down, disabling slave", "nic ens1f0np0",
        {"state": "down", "brief": False},
    ),
    Story(
        "nic_error", "[9.0] infiniband mlx5_3: create_mkey_callback:148:(pid 0): async reg mr failed. status -5", "nic mlx5_3",
        {"kind": "command"},
    ),
    Story(
        "gpu_init_failed", "[9.0] NVRM: GPU 0000:9b:00.0: request_irq() failed (-28)", "gpu 0000:9b:00.0",
        {"reason": "the kernel gave it no interrupt"},
    ),
    Story("uvm_fatal_error", "[9.0] NVRM: nvidia-uvm: uvm_global_set_fatal_error: NV_ERR_ECC_ERROR", "", {"status": "NV_ERR_ECC_ERROR"}),
    Story("uvm_fatal_error", "[9.0] uvm encountered global fatal error 0x60, requiring os reboot to recover.", ""),
    Story(
        "nvidia_assertion",
        "[9.0] NVRM: GPU0 gpuHandleSanityCheckRegReadError_GH100: Possible bad register read: addr: 0x110804,  regvalue: 0xbadf4100,  "
        "error code: Unknown SYS_PRI_ERROR_CODE",
        "", {"status": "0xbadf4100", "grave": True},
    ),
    Story(
        "hardware_error",
        "[2.0] BERT: Error records from previous boot:\n[2.0] [Hardware Error]: event severity: fatal\n"
        "[2.0] [Hardware Error]:   section_type: PCIe error\n[2.0] [Hardware Error]:   device_id: 0000:9b:00.0",
        "pci 0000:9b:00.0", {"severity": "fatal", "section": "PCIe error"},
    ),
    Story(
        "slurm_step_unkillable",
        "slurmstepd: error: *** STEP 4242.0 STEPD TERMINATED ON gpu-07 AT 2026-03-03T12:05:01 DUE TO JOB NOT ENDING WITH SIGNALS ***",
        "node gpu-07", {"step": "4242.0"},
    ),
    Story(
        "slurm_step_unkillable",
        "[2026-03-03T12:05:01.110] update_node: node gpu-06 reason set to: Kill task failed\n[2026-03-03T12:05:02.110] update_node: node gpu-06 state set to IDLE\n"
        "[2026-03-03T12:07:01.110] error: slurmd error running JobId=4242 on node(s)=gpu-07: Kill task failed",
        "node gpu-07", {"step": None},
    ),
    Story(
        "slurmctld_inval",
        "[2025-11-12T10:22:44.101] error: Setting node gpu-07 state to DRAIN with reason:gres/gpu count reported lower than configured (7 < 8)",
        "node gpu-07", {"resource": "gres/gpu", "found": 7, "configured": 8},
    ),
    Story("gpu_lost", "[2025-11-12T10:22:44.200] error: gpu_p_get_device_count: Failed to get device count: GPU is lost"),
    Story(
        "fm_gave_up",
        "Nov 12 10:22:44 gpu-07 nv-fabricmanager[8811]: detected number of NVSwitches don't match with any supported system topology, "
        "aborting fabric manager",
        "", {"why": "no_switch"},
    ),
    Story(
        "nvlink_training_failed",
        "Nov 12 10:22:44 gpu-07 nv-fabricmanager[8811]: [ERROR] Detected NVLink training failure between GPU pci bus id 00000000:5D:00.0 "
        "NVLink 4 and NVSwitch pci bus id 00000000:07:00.0 port 33",
        "gpu 0000:5d:00.0", {"link": 4, "switch": "0000:07:00.0", "port": 33},
    ),
    Story("gpu_lost", "[77.1] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "gpu 0000:3b:00.0", {"reporter": "NVRM"}),
    Story(
        "gpu_lost",
        "Mar  3 12:00:01 gpu-07 dcgm-job[88]: Unable to determine the device handle for GPU 0000:5E:00.0: GPU is lost.  Reboot",
        "gpu 0000:5e:00.0", {"reporter": "dcgm-job"},
    ),
    Story(
        "gpu_init_failed",
        "[5.0] NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x24:0x65:1477)\n"
        "[5.1] NVRM: GPU 0000:07:00.0: rm_init_adapter failed, device minor number 3",
        "gpu 0000:07:00.0", {"error": "0x24:0x65:1477", "minor": 3},
    ),
    Story(
        "gsp_heartbeat_timeout",
        "[9.0] NVRM: GPU2 _kgspRpcRecvPoll: GSP RM heartbeat timed out",
        "gpu instance:2",
    ),
    Story(
        "gsp_rpc_timeout",
        "[9.0] NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 103 sequence 88!\n"
        "[9.5] NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "gpu 0000:0b:00.0", {"function": 103, "sequence": 88},
    ),
    Story(
        "gsp_crash",
        "[9.0] NVRM: kgspHealthCheck_GH100: ********* GSP-CrashCat Report *********\n"
        "[9.0] NVRM: Xid (PCI:0000:2a:00): 120, GSP task exception: load access page fault (cause:0xd) @ pc:0x1, task:3",
        "gpu 0000:2a:00.0",
    ),
    Story("pmu_halted", "[9.0] NVRM: GPU1 _kgspRpcGspEventPmuHalted: Received signal from GSP that PMU has halted.", "gpu instance:1"),
    Story(
        "gpu_device_busy_removed",
        "[9.0] NVRM: Attempting to remove device 0000:a1:00.0 with non-zero usage count!",
        "gpu 0000:a1:00.0",
    ),
    Story(
        "nvidia_assertion",
        "[9.0] NVRM: nvAssertOkFailedNoLog: Assertion failed: Invalid state [NV_ERR_INVALID_STATE] (0x40) returned from foo(p) @ mem.c:99",
        fields={"location": "mem.c:99"},
    ),
    Story(
        "nvlink_driver_message",
        "[9.0] NVRM: GPU 0000:1b:00.0: knvlinkUpdateRxDetect_IMPL: NVLink failed to update the link mask!",
        "gpu 0000:1b:00.0",
    ),
    Story("driver_load_failed", "[9.0] NVRM: No NVIDIA GPU found.", fields={"reason": "no_gpu"}),
    Story(
        "driver_load_failed",
        "[9.0] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "[9.0] NVRM: BAR1 is 0M @ 0x0 (PCI:0000:41:00.0)\n"
        "[9.0] nvidia: probe of 0000:41:00.0 failed with error -1\n"
        "[9.0] NVRM: The NVIDIA probe routine failed for 1 device(s).\n"
        "[9.0] NVRM: None of the NVIDIA devices were initialized.",
        fields={"reason": "bar_invalid", "device": "0000:41:00.0"},
    ),
    Story("driver_load_failed", "[9.0] nvidia: probe of 0000:41:00.0 failed with error -1", fields={"reason": "probe_failed"}),
    Story("driver_load_failed", "[9.0] NVRM: GPU 0000:41:00.0 is already bound to nouveau.", fields={"reason": "nouveau"}),
    Story(
        "driver_load_failed",
        "[9.0] NVRM: The NVIDIA probe routine was not called for 2 device(s).\n"
        "[9.0] NVRM: This can occur when another driver was loaded and\n[9.0] NVRM: obtained ownership of the NVIDIA device(s).\n"
        "[9.0] NVRM: Try unloading the conflicting kernel module (and/or\n[9.0] NVRM: reconfigure your kernel without the conflicting\n"
        "[9.0] NVRM: driver(s)), then try loading the NVIDIA kernel module again.\n[9.0] NVRM: No NVIDIA devices probed.",
        fields={"reason": "nouveau"},
    ),
    Story("driver_load_failed", "[9.0] Loading of unsigned module is rejected", fields={"reason": "signature"}),
    Story("driver_load_failed", "[9.0] nvidia_uvm: Unknown symbol nvUvmInterfaceFoo (err -2)", fields={"reason": "symbol"}),
    Story(
        "driver_load_failed",
        "[9.0] nvidia 0000:41:00.0: Direct firmware load for nvidia/550.90.07/gsp_ga10x.bin failed with error -2",
        fields={"reason": "firmware"},
    ),
    Story(
        "driver_library_mismatch",
        "[9.0] NVRM: API mismatch: the client has the version 535.104.05, but\n"
        "[9.0] NVRM: this kernel module has the version 535.86.10.  Please\n"
        "[9.0] NVRM: make sure that this kernel module and all NVIDIA driver\n[9.0] NVRM: components have the same version.",
        fields={"library": "535.104.05", "module": "535.86.10"},
    ),
    Story(
        "driver_library_mismatch",
        "[9.0] NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)\n"
        "[9.0] NVRM: has the version 550.90.07, but this kernel module has\n[9.0] NVRM: the version 550.54.15.",
        fields={"library": "550.90.07"},
    ),
    Story(
        "gpu_power_state_stuck",
        "[9.0] nvidia 0000:01:00.0: Unable to change power state from D3cold to D0, device inaccessible",
        "gpu 0000:01:00.0", {"state": "from D3cold to D0, device inaccessible"},
    ),
    Story(
        "gpu_reset_demanded",
        "[9.0] NVRM: GPU 0000:01:00.0: gpuSanityCheck_IMPL: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062)",
        "gpu 0000:01:00.0",
    ),
    Story(
        "gpu_reset_attempt",
        "[99.0] vfio-pci 0000:41:00.0: not ready 65535ms after bus reset; giving up\n[99.1] NVRM: GPU 0000:41:00.0: rm_x: done",
        "gpu 0000:41:00.0", {"stage": "failed", "reason": "not ready 65 s after bus reset"},
    ),
    Story(
        "gpu_reset_attempt",
        "Mar  3 12:00:01 gpu-07 root: GPU 00000000:0C:00.0 was successfully reset.",
        "gpu 0000:0c:00.0", {"stage": "succeeded", "reporter": "nvidia-smi"},
    ),
    Story(
        "gpu_reset_attempt",
        "The following GPUs could not be reset:\n  GPU 00000000:0C:00.0: In use by another client\n\n1 device is currently being used",
        "gpu 0000:0c:00.0", {"stage": "refused"},
    ),
    Story(
        "gpu_reset_attempt",
        "Mar  3 12:00:01 gpu-07 root: nvidia-smi --gpu-reset -i 6: Unable to reset this GPU: GPU 00000000:0C:00.0 has fallen off the bus",
        "gpu 0000:0c:00.0", {"stage": "refused"},
    ),
    Story(
        "gpu_reset_attempt",
        "Mar  3 12:00:01 gpu-07 sudo: ops : COMMAND=/usr/bin/nvidia-smi -r -i 0000:0c:00.0",
        "gpu 0000:0c:00.0", {"stage": "begun"},
    ),
    Story(
        "slurm_step_ended",
        "Mar  3 12:00:01 gpu-07 slurmd[88]: error: *** STEP 4242.0 ON gpu-07 CANCELLED AT 2026-03-03T12:00:01 DUE TO TIME LIMIT ***",
        "node gpu-07", {"step": "4242.0", "reason": "time limit"},
    ),
    Story(
        "slurmctld_inval",
        "May 23 12:49:52 mgmt1 slurmctld[808]: error: Setting node gpu-07 state to INVAL with reason:gres/gpu count reported lower than configured (7 < 8)",
        "node gpu-07", {"resource": "gres/gpu", "found": 7, "configured": 8},
    ),
    Story(
        "pci_power_state_stuck",
        "[9.0] pcieport 0000:00:01.0: Unable to change power state from D3hot to D0, device inaccessible",
        "pci 0000:00:01.0",
    ),
    Story(
        "peermem_invalid_context",
        "[9.0] nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
    ),
    Story(
        "aer",
        "[9.0] pcieport 0000:16:01.0: AER: Corrected error received: 0000:17:00.0\n"
        "[9.0] nvidia 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)\n"
        "[9.0] nvidia 0000:17:00.0:   device [10de:2330] error status/mask=00000041/0000a000\n"
        "[9.0] nvidia 0000:17:00.0:    [ 0] RxErr                  (First)\n"
        "[9.0] nvidia 0000:17:00.0:    [ 6] BadTLP",
        "gpu 0000:17:00.0",
        {"severity": "corrected", "layer": "Physical", "agent": "Receiver ID", "device": "0000:16:01.0", "bits": "RxErr,BadTLP"},
    ),
    Story(
        "aer",
        "[9.0] pcieport 0000:16:01.0: AER: Uncorrectable (Non-Fatal) error message received from 0000:18:00.0\n"
        "[9.0] mlx5_core 0000:18:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Requester ID)\n"
        "[9.0] mlx5_core 0000:18:00.0:   device [15b3:1021] error status/mask=00104000/00000000\n"
        "[9.0] pcieport 0000:16:01.0: AER: device recovery successful",
        "pci 0000:18:00.0",
        {"severity": "nonfatal", "bits": "CmpltTO,UnsupReq", "device": "0000:16:01.0", "recovered": True},
    ),
    Story(
        "aer",
        "[9.0] pcieport 0000:00:03.0: AER: Uncorrected (Fatal) error received: 0000:00:03.0\n"
        "[9.0] pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)\n"
        "[9.0] pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00000020/00000000\n"
        "[9.0] pcieport 0000:00:03.0:    [ 5] SDES                   (First)\n"
        "[9.1] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)\n"
        "[9.1] pcieport 0000:00:03.0: AER: device recovery failed",
        "pci 0000:00:03.0",
        {"severity": "fatal", "bits": "SDES", "gpu": "0000:03:00.0", "recovered": False},
    ),
    Story("aer", "[9.1] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)", "gpu 0000:03:00.0", {"recovered": False}),
    Story("pcie_containment", "[9.0] pcieport 0000:b0:02.0: DPC: containment event, status:0x1f01 source:0x0000", "pci 0000:b0:02.0"),
    Story("pcie_link_down", "[9.0] pcieport 0000:16:01.0: pciehp: Slot(8): Link Down", "pci 0000:16:01.0", {"what": "link_down", "slot": "8"}),
    Story("pcie_link_down", "[9.0] pcieport 0000:16:01.0: pciehp: Slot(8-1): Card not present", fields={"what": "card_not_present"}),
    Story(
        "pcie_bandwidth_limited",
        "[9.0] mlx5_core 0000:86:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:80:02.0 "
        "(capable of 126.024 Gb/s with 16.0 GT/s PCIe x8 link)",
        "pci 0000:86:00.0", {"available": 63.008, "width": 8, "limited_by": "0000:80:02.0", "max_speed": 16.0},
    ),
    Story(
        "machine_check",
        "[9.0] mce: [Hardware Error]: CPU 17: Machine Check: 0 Bank 7: 8c00004000010091\n[9.0] mce: [Hardware Error]: Machine check events logged",
        fields={"cpu": 17, "bank": 7, "status": "8c00004000010091", "severity": "corrected"},
    ),
    Story(
        "machine_check",
        "[9.0] mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 5: be00000000800400",
        fields={"severity": "uncorrected"},
    ),
    Story(
        "aer",
        "[9.0] pcieport 0000:5d:01.0: AER: Multiple Corrected error message received from 0000:5e:00.0\n"
        "[9.0] mlx5_core 0000:5e:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
        "[9.9] aer_ratelimit: 4211 callbacks suppressed",
        "pci 0000:5e:00.0", {"severity": "corrected", "count": 4213},
    ),
    Story("machine_check", "[9.0] mce: [Hardware Error]: Machine check events logged", fields={"severity": "untold"}),
    Story(
        "host_memory_error",
        "[9.0] mce: [Hardware Error]: Machine check events logged\n[9.1] EDAC MC2: 1 CE memory read error on CPU_SrcID#0_MC#2_Chan#1_DIMM#0 ()",
        fields={"severity": "corrected"},
    ),
    Story("nic_error", "[9.0] mlx5_core 0000:5d:00.0: Port module event: module 0, Cable unplugged", "nic 0000:5d:00.0", {"kind": "unplugged"}),
    Story(
        "nvswitch_lost", "[9.0] nvidia-nvswitch1: Device 0000:06:00.0 has fallen off the bus", "nvswitch 0000:06:00.0",
    ),
    Story(
        "host_memory_error",
        "[9.0] EDAC MC1: 3 UE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)",
        fields={"severity": "uncorrected", "count": 3, "controller": "MC1", "error": "memory read error",
                "location": "CPU_SrcID#1_MC#0_Chan#0_DIMM#0, MC1 channel 0 slot 0"},
    ),
    Story(
        "host_memory_error", "[9.0] EDAC MC0: 2 CE single-bit ECC on unknown memory (node:1 card:2 module:0 rank:1 page:0x1f offset:0x0)",
        fields={"severity": "corrected", "count": 2, "location": "MC0 node 1 card 2 module 0"},
    ),
    Story(
        "host_memory_error",
        "Jun 14 20:03:13 gpu-07 mcelog[812]: corrected DIMM memory error count exceeded threshold: 10 in 24h\n"
        "Jun 14 20:03:13 gpu-07 mcelog[812]: Location: SOCKET:1 CHANNEL:0 DIMM:? []",
        fields={"severity": "corrected", "count": 10, "location": "SOCKET 1 CHANNEL 0 DIMM ?"},
    ),
    Story(
        "host_memory_error",
        "Jun 14 20:03:13 gpu-07 rasdaemon[63]: <...>-1128  [004]  0.000006: mc_event: 2024-06-14 20:03:12 +0000 1 Corrected error: memory read error on "
        "DIMM_B2 (mc: 1 location: 0:0 address: 0x2f3c4d00 grain: 5)",
        fields={"severity": "corrected", "count": 1, "location": "DIMM_B2, MC1 location 0:0", "error": "memory read error"},
    ),
    Story("machine_check", "[9.0] CPU12 BANK7 CMCI storm detected", fields={"severity": "storm", "cpu": 12, "bank": 7}),
    Story(
        "hardware_error",
        "[9.0] {2}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1\n"
        "[9.0] {2}[Hardware Error]: event severity: fatal\n[9.0] {2}[Hardware Error]:   section_type: PCIe error\n"
        "[9.0] {2}[Hardware Error]:   device_id: 0000:3b:00.0",
        "pci 0000:3b:00.0", {"severity": "fatal", "section": "PCIe error", "device": "0000:3b:00.0"},
    ),
    Story("cpu_throttled", "[9.0] CPU17: Package temperature above threshold, cpu clock throttled (total events = 123)", fields={"cpu": 17, "level": "package", "count": 123}),
    Story(
        "oom_kill",
        "[9.0] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=979\n[9.0] CPU: 3 PID: 7\n"
        "[9.0] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0-1,oom_memcg=/kubepods/pod7,"
        "task_memcg=/kubepods/pod7/c,task=python3,pid=4242,uid=0\n"
        "[9.0] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:98304kB, anon-rss:65536kB, file-rss:0kB\n"
        "[9.4] oom_reaper: reaped process 4242 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        fields={"kind": "cgroup", "process": "python3", "pid": 4242, "rss": 64.0, "cgroup": "/kubepods/pod7", "invoker": "python3"},
    ),
    Story(
        "oom_kill",
        "[9.0] Out of memory: Killed process 11 (a b) total-vm:4kB, anon-rss:2048kB, file-rss:0kB\n"
        "[9.0] Out of memory: Killed process 12 (c) total-vm:4kB, anon-rss:1024kB, file-rss:0kB",
        count=2,
    ),
    Story("kernel_panic", "[9.0] Kernel panic - not syncing: Fatal exception in interrupt", fields={"reason": "Fatal exception in interrupt"}),
    Story(
        "kernel_oops",
        "<1>[9.0] BUG: kernel NULL pointer dereference, address: 0000000000000008\n<4>[9.0] Oops: 0002 [#1] SMP NOPTI\n"
        "<4>[9.0] CPU: 0 PID: 1899 Comm: python3 Tainted: P           OE",
        fields={"process": "python3", "pid": 1899, "deliberate": False},
    ),
    Story("sysrq_crash", "<6>[9.0] sysrq: Trigger a crash"),
    Story(
        "soft_lockup", "[9.0] watchdog: BUG: soft lockup - CPU#12 stuck for 23s! [python3:4242]",
        fields={"kind": "soft", "cpu": 12, "seconds": 23, "process": "python3", "pid": 4242},
    ),
    Story("soft_lockup", "[9.0] NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", fields={"kind": "hard", "cpu": 3}),
    Story("soft_lockup", "[9.0] rcu: INFO: rcu_sched self-detected stall on CPU", fields={"kind": "rcu"}),
    Story(
        "hung_task", "[9.0] INFO: task nvidia-smi:4242 blocked for more than 120 seconds.",
        fields={"process": "nvidia-smi", "pid": 4242, "seconds": 120},
    ),
    Story("filesystem_stall", "[9.0] nfs: server filer-1 not responding, still trying", fields={"filesystem": "nfs", "server": "filer-1", "state": "lost"}),
    Story("filesystem_stall", "[9.0] nfs: server filer-1 OK", fields={"state": "restored"}),
    Story("filesystem_stall", "[9.0] nfs: server filer-1 not responding, still trying\n[69.0] nfs: server filer-1 OK", fields={"state": "lost", "away_ms": 60000}, count=2),
    Story(
        "filesystem_stall",
        "[9.0] Lustre: scratch-OST0004-osc-ff: Connection to scratch-OST0004 (at 10.0.0.4@o2ib) was lost; in progress operations wait",
        fields={"filesystem": "lustre", "server": "scratch-OST0004", "state": "lost"},
    ),
    Story("io_error", "[9.0] blk_update_request: I/O error, dev nvme0n1, sector 1953 op 0x0:(READ) flags 0x0", fields={"device": "nvme0n1", "sector": 1953, "operation": "READ"}),
    Story("io_error", "[9.0] nvme nvme2: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", fields={"device": "nvme2"}),
    Story("filesystem_damaged", "[9.0] EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2", fields={"device": "sda1"}),
    Story("filesystem_damaged", "[9.0] Aborting journal on device dm-2-8.", fields={"device": "dm-2"}),
    Story("filesystem_damaged", "[9.0] XFS (dm-3): metadata I/O error in \"xfs_read_agf+0x9c\" at daddr 0x1 len 1 error 74", fields={"device": "dm-3"}),
    Story("filesystem_damaged", "[9.0] BTRFS critical (device sdb: state EA): corrupt leaf: root=5 block=1234", fields={"device": "sdb"}),
    Story("gpu_reset_demanded", "[9.0] nvidia-uvm: encountered unexpected error: Reset required [NV_ERR_RESET_REQUIRED]"),
    Story("link_carrier", "[9.0] bond2: now running without any active interface!", "nic bond2", {"state": "down"}),
    Story("link_carrier", "[9.0] bond2: active interface up!", "nic bond2", {"state": "up"}),
    Story("io_error", "[9.0] blk_update_request: critical medium error, dev sda, sector 122 op 0x0:(READ) flags 0x0", fields={"device": "sda", "sector": 122}),
    Story("io_error", "[9.0] md/raid0:md0: Disk failure on nvme0n1p2 detected, failing array.", fields={"device": "nvme0n1p2"}),
    Story("io_error", "[9.0] sd 0:0:0:0: [sda] tag#12 FAILED Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK cmd_age=0s", fields={"device": "sda", "gone": True}),
    Story("nic_error", "[9.0] NETDEV WATCHDOG: ens1f0np0 (mlx5_core): transmit queue 3 timed out", "nic ens1f0np0", {"kind": "completion"}),
    Story("nic_error", "[9.0] ib0: transmit timeout: latency 2210 msecs", "nic ib0", {"kind": "completion"}),
    Story("io_error", "[9.0] XFS (nvme0n1): metadata I/O error in \"x\" at daddr 0x1", fields={"device": "nvme0n1"}),
    Story(
        "process_fault", "[9.0] python3[4242]: segfault at 0 ip 00007f3a sp 00007ffd error 4 in libcuda.so.535.104.05[7f3a+1000]",
        "process 4242", {"process": "python3", "library": "libcuda.so.535.104.05"},
    ),
    Story("power_event", "Mar  3 12:00:01 gpu-07 ipmievd: Power Supply sensor PS1 Status - Failure detected asserted", fields={"source": "ipmievd"}),
    Story("power_event", "[9.0] thermal thermal_zone0: critical temperature reached (105 C), shutting down", fields={"source": "thermal"}, count=1),
    Story("driver_loaded", "[8.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", fields={"version": "535.104.05"}),
    Story("boot", "[    0.000000] Linux version 5.15.0-112-generic (x@y) (gcc 11) #122-Ubuntu SMP", fields={"version": "5.15.0-112-generic"}),
    Story("link_carrier", "Mar  3 12:00:01 gpu-07 systemd-networkd[53]: ib3: Lost carrier", "nic ib3", {"state": "down", "source": "systemd-networkd"}),
    Story("link_carrier", "[9.0] mlx5_core 0000:5d:00.0 ens1np0: Link up", "nic ens1np0", {"state": "up", "pci": "0000:5d:00.0"}),
    Story("link_carrier", "[9.0] igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down", "nic eth0", {"state": "down"}),
    Story("link_carrier", "[9.0] infiniband mlx5_3: Port: 1 Link DOWN", "port mlx5_3/1", {"state": "down"}),
    Story(
        "nic_error", "[9.0] mlx5_core 0000:5d:00.0: poll_health:835:(pid 0): device's health compromised - reached miss count",
        "nic 0000:5d:00.0", {"kind": "health"},
    ),
    Story(
        "nic_error",
        "[9.0] mlx5_core 0000:5d:00.0: mlx5_cmd_check:777:(pid 1): ACCESS_REG(0x805) op_mod(0x0) failed, status bad parameter(0x3), syndrome (0x15c356)",
        fields={"kind": "command", "syndrome": "0x15c356"},
    ),
    Story("nic_error", "[9.0] mlx5_core: probe of 0000:01:00.0 failed with error -22", fields={"kind": "start"}),
    Story("nic_error", "[9.0] mlx5_core 0000:01:00.0: probe with driver mlx5_core failed with error -110", fields={"kind": "start"}),
    Story(
        "nic_error",
        "[9.0] mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
        fields={"kind": "power"},
    ),
    Story("nic_error", "[9.0] mlx5_core 0000:5d:00.0: Port module event[error]: module 0, Cable error, Bus stuck", fields={"kind": "module"}),
    Story("network_table_full", "[9.0] nf_conntrack: nf_conntrack: table full, dropping packet", fields={"table": "connections"}),
    Story("network_table_full", "[9.0] neighbour: ndisc_cache: neighbor table overflow!", fields={"table": "neighbours"}),
    Story("page_allocation_failure", "[9.0] cat: page allocation failure: order:4, mode:0xdc0(GFP_KERNEL|__GFP_ZERO)", fields={"size_kib": 64, "severity": "warning"}),
    Story(
        "nic_error", "[9.0] ice 0000:31:00.0 ens2f1: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5120 ms",
        "nic ens2f1", {"kind": "queue", "driver": "ice"},
    ),
    Story("nic_error", "[9.0] mlx5_core 0000:31:00.0 ens2f1: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5120 ms", "nic ens2f1", {"kind": "completion"}),
    Story("slurm_failure", "Mar  3 12:00:01 mgmt slurmctld[9]: error: _slurm_rpc_epilog_complete: epilog error on gpu-07, draining the node", "node gpu-07", {"kind": "epilog"}),
    Story("nic_error", "[9.0] NETDEV WATCHDOG: ens2f1 (bnxt_en): transmit queue 3 timed out", "nic ens2f1", {"kind": "queue", "driver": "bnxt_en"}),
    Story(
        "kubelet_runtime_silent",
        'Mar  3 12:00:01 gpu-07 kubelet[18]: E0303 12:00:01.1 18 kubelet.go:2419] "Skipping pod synchronization" '
        'err="PLEG is not healthy: pleg was last seen active 4m2.1s ago; threshold is 3m0s"',
        fields={"since": "4m2.1s"},
    ),
    Story(
        "kubernetes_condition",
        'Mar  3 12:00:01 gpu-07 kubelet[18]: E0303 12:00:01.1 18 eviction_manager.go:366] "Eviction manager: must evict pod(s) to reclaim" resourceName="memory"',
        fields={"condition": "MemoryPressure"},
    ),
    Story(
        "slurm_failure",
        "Mar  3 12:00:01 gpu-07 slurmd[22]: error: /etc/slurm/prolog.sh: exited with status 0x0200\n"
        "Mar  3 12:00:01 gpu-07 slurmd[22]: error: [job 4711] prolog failed status=2:0",
        fields={"kind": "prolog", "script": "/etc/slurm/prolog.sh", "exit_code": 2, "job": "4711"},
    ),
    Story(
        "slurm_failure",
        "Mar  3 12:00:01 gpu-07 slurmd[22]: error: [job 4711] prolog failed: rc:256 output:GPU 3: row remap pending",
        fields={"kind": "prolog", "job": "4711", "reason": "GPU 3: row remap pending"},
    ),
    Story(
        "pod_refused",
        'Mar  3 12:00:01 gpu-07 kubelet[18]: E0303 12:00:01.1 18 kubelet.go:2380] "Failed to admit pod" pod="ml/t-0" '
        'err="Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected"',
        "pod ml/t-0",
        {"pod": "t-0", "resource": "nvidia.com/gpu", "requested": 8, "available": 7},
    ),
    Story("daemon_disk_full", "Mar  3 12:00:01 gpu-07 rsyslogd[8]: file '/var/log/messages'[7] write error: No space left on device", fields={"path": "/var/log/messages"}),
    Story("filesystem_stall", "Mar  3 12:00:01 gpu-07 mmfs[91]: [N] mmfsd is shutting down.", fields={"filesystem": "gpfs", "state": "down"}),
    Story("fm_nothing_to_do", "Mar  3 12:00:01 gpu-07 nv-fabricmanager[41]: request failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"),
    Story("imex_connection_lost", "Mar  3 12:00:01 gpu-07 nvidia-imex[41]: [Mar 03 2026 12:00:01] [ERROR] [tid 47] Connection lost to node 7 with ip address 192.0.2.27.", fields={"peer": 7, "address": "192.0.2.27"}),
    Story("imex_error", "Mar  3 12:00:01 gpu-07 nvidia-imex[41]: [Mar 03 2026 12:00:01] [ERROR] [tid 47] Failed to parse the nodes configuration file"),
    Story(
        "fm_failed",
        "Mar  3 12:00:01 gpu-07 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\n"
        "Mar  3 12:00:01 gpu-07 systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.\n"
        "Mar  3 12:00:01 gpu-07 systemd[1]: Failed to start nvidia-fabricmanager.service - NVIDIA fabric manager service.",
        fields={"result": "code=exited, status=1/FAILURE"},
    ),
    Story("persistenced_failed", "Mar  3 12:00:01 gpu-07 nvidia-persistenced: Failed to query NVIDIA devices. Please ensure"),
    Story("modprobe_failed", "Mar  3 12:00:01 gpu-07 modprobe[7]: ERROR: could not insert 'nvidia': No such device"),
    Story("hostengine_failed", "Mar  3 12:00:01 gpu-07 systemd[1]: nvidia-dcgm.service: Main process exited, code=killed, status=11/SEGV"),
    Story("hostengine_failed", "[9.0] nv-hostengine[77]: segfault at 8 ip 0000 sp 0000 error 4 in libdcgm.so[1+2]"),
    Story("nvidia_service_failed", "Mar  3 12:00:01 gpu-07 systemd[1]: nvidia-imex.service: Failed with result 'signal'."),
    Story(
        "sxid", "[9.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO (First)\n"
        "[9.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Severity 0 Engine instance 46 Sub-engine instance 00\n"
        "[9.0] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 28006, Data {0x00000001, 0x00000001}",
        "nvswitch 0000:c1:00.0", {"severity_word": "Non-fatal", "link": 46, "reporter": "nvidia-nvswitch3"}, 28006,
    ),
    Story(
        "device_plugin_unhealthy",
        "I0301 10:00:00.000100       1 server.go:245] 'nvidia.com/gpu' device marked unhealthy: GPU-8540a9b3-eeb9-4214-8526-f93c9ea826a8",
        "gpu GPU-8540a9b3-eeb9-4214-8526-f93c9ea826a8", {},
    ),
    Story(
        "xid_reported",
        "I0301 10:00:00.000000       1 health.go:139] XidCriticalError: Xid=48 on Device=GPU-8540a9b3-eeb9-4214-8526-f93c9ea826a8; "
        "marking device as unhealthy.",
        "gpu GPU-8540a9b3-eeb9-4214-8526-f93c9ea826a8", {"reporter": "the Kubernetes device plugin"}, 48,
    ),
    Story(
        "gpu_lost",
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n"
        "               NVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands.",
        "gpu 0000:b3:00.0", {"reporter": "NVRM"},
    ),
]  # fmt: skip


def of(found: list[Observation] | tuple[Observation, ...], fact: str) -> list[tuple[Observation, Event]]:
    return [(o, o.value) for o in found if o.fact == fact and o.status is Status.OK and isinstance(o.value, Event)]


of_each_story = each("story", STORIES, ids=lambda s: f"{s.fact}-{STORIES.index(s)}")


class TestEvents:
    @of_each_story
    def test_is_told_by_its_lines(self, story: Story) -> None:
        events = of(kernel_log.parse(lines_of(story.lines), Context("log", "gpu-07")), story.fact)
        assert len(events) == story.count
        observation, event = events[0]
        assert not story.subject or str(observation.subject) == story.subject
        assert event.code == story.code
        assert {name: event.get(name) for name in story.fields} == story.fields
        assert observation.subject.host == "gpu-07"

    @of_each_story
    def test_fits_the_vocabulary(self, story: Story) -> None:
        for o in kernel_log.parse(lines_of(story.lines), Context("log")):
            assert o.fact in kernel_log.PROVIDES
            if o.status is Status.OK:
                assert vocabulary()[o.fact].accepts(o.value), o

    @pytest.mark.slow
    @of_each_story
    def test_is_found_amid_other_lines(self, story: Story) -> None:
        """The triggers, and the parser's quick look at long logs, are supersets of what the recognisers know."""
        filler = [FILLER.format(n=n) for n in range(300)]
        text = "\n".join([*filler, story.lines, *filler])
        context = Context("log", "gpu-07")
        alone = of(kernel_log.parse(lines_of(story.lines), context), story.fact)
        scanned = scan([io.BytesIO(text.encode())], [kernel_log.FORMAT], lambda _: context).observations
        for amid in (of(scanned, story.fact), of(kernel_log.parse(lines_of(text), context), story.fact)):
            assert [(o.subject, e) for o, e in amid] == [(o.subject, e) for o, e in alone]
            assert [o.source.line for o, _ in amid] == [(o.source.line or 0) + 300 for o, _ in alone]


POISONED = "[9.2] Memory failure: 0x3a5c2b: Sending SIGBUS to python3:4242 due to hardware memory corruption"


@each(
    ("before", "module", "page"),
    [
        ("[9.0] EDAC MC1: 1 UE memory read error on CPU#1_DIMM#0 (channel:0 slot:0 page:0x3a5c2b offset:0x40)",
         "CPU#1_DIMM#0, MC1 channel 0 slot 0", None),
        ("[9.0] EDAC MC1: 1 UE memory read error on CPU#1_DIMM#0 (channel:0 slot:0 page:0x3a5c2c offset:0x40)", None, "0x3a5c2b"),
        ("[9.0] {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4\n[9.0] {1}[Hardware Error]: event severity: "
         "recoverable\n[9.1] {1}[Hardware Error]:   physical_address: 0x00000003a5c2ba40\n[9.1] {1}[Hardware Error]:   DIMM location: P1_DIMM_A1",
         "P1_DIMM_A1", None),
    ],
)  # fmt: skip
def test_the_module_of_a_bad_page_is_the_one_that_was_told_of_it(
    before: str, module: str | None, page: str | None
) -> None:
    found = parse(lines_of(f"{before}\n{POISONED}"), Context("x"))
    [event] = [event for _, event in of(found, "host_memory_error") if "SIGBUS" in str(event.get("text"))]
    assert (event.get("location"), event.get("page")) == (module, page)


def test_another_device_and_another_question_are_no_reset_of_a_gpu() -> None:
    text = (
        "Mar  3 12:00:00 gpu-07 kernel: mlx5_core 0000:41:00.0: not ready 65535ms after FLR; giving up\n"
        "Mar  3 12:00:01 gpu-07 sudo: ops : COMMAND=/usr/bin/nvidia-smi -q -i 2"
    )
    assert not of(kernel_log.parse(lines_of(text), Context("log")), "gpu_reset_attempt")


def test_bursts_of_two_failures_keep_their_own_reasons() -> None:
    text = (
        "[9.0] NVRM: The NVIDIA probe routine was not called for 2 device(s).\n[9.1] NVRM: Try unloading the conflicting kernel module\n"
        "[60.0] NVRM: The NVIDIA probe routine failed for 1 device(s).\n[60.1] nvidia: version magic '5.15' should be '5.19'"
    )
    found = [
        o for o in parse(lines_of(text), Context("x")) if o.fact == "driver_load_failed" and isinstance(o.value, Event)
    ]
    assert [o.value.get("reason") for o in found if isinstance(o.value, Event)] == ["nouveau", "version_magic"]


@each(
    ("place", "mig"),
    [("", None), (" GPU-I:05", "GPU-I:05"), (" GPU-I", "GPU-I"), (" GPU-I:01 GPU-CI:02", "GPU-I:01 GPU-CI:02")],
)
def test_the_instance_of_a_gpu_that_is_cut_into_instances_is_kept(place: str, mig: str | None) -> None:
    text = f"[9.0] NVRM: Xid (PCI:0000:41:00{place}): 94, pid=7, name=a, Contained: SM (0x1). RST: No, D-RST: No"
    [xid] = [o for o in parse(lines_of(text), Context("x")) if o.fact == "xid" and isinstance(o.value, Event)]
    assert isinstance(xid.value, Event)
    assert (xid.value.code, xid.value.get("mig"), xid.subject.id) == (94, mig, "0000:41:00.0")
    assert place in xid.excerpt


@each(
    "line",
    [
        "nvrm: xid (pci:0000:9B:00) : 79 , pid=unknown, GPU has fallen off the bus.",
        "Nov 12 10:00:02 n1 kernel: NVRM: XID (PCI:0000:9b:00): 79, pid=7, GPU has fallen off the bus.",
        "xid(0000:9b:00); 79, GPU has fallen off the bus.",
        "NVRM : Xid ( PCI:0000:9b:00 ) : 79, GPU has fallen off the bus.",
    ],
)
def test_an_xid_that_was_typed_or_read_off_a_picture_is_one_and_its_line_is_shown_as_it_stands(line: str) -> None:
    [xid] = [o for o in parse(lines_of(line), Context("x")) if o.fact == "xid" and isinstance(o.value, Event)]
    assert isinstance(xid.value, Event)
    assert (xid.value.code, xid.subject.id, xid.excerpt) == (79, "0000:9b:00.0", line)
    assert kernel_log.sniff(line)


def test_logs_of_slurm_and_kubernetes_are_told_by_what_they_speak_of() -> None:
    slurm = "[2025-11-12T10:22:44.101] error: [job 88123] prolog failed status=1:0\n"
    plugin = "I1112 08:03:11.914330       1 server.go:146] Registered device plugin for 'nvidia.com/gpu' with Kubelet\n"
    assert kernel_log.sniff(slurm)
    assert kernel_log.sniff(plugin)
    assert not kernel_log.sniff("[2025-11-12T10:22:44.101] step 12 loss 3.4\n")
    assert not kernel_log.sniff("I1112 08:03:11.914330       1 server.go:146] GET /index.html\n")


QUIET = [
    "[9.0] nvidia 0000:2a:00.0: not ready 1023ms after FLR; waiting",
    "[9.0] pcieport 0000:a0:01.0: broken device, retraining non-functional downstream link at 2.5GT/s\n"
    "[9.1] pcieport 0000:a0:01.0: removing 2.5GT/s downstream link speed restriction",
    "[9.0] pcieport 0000:5c:01.0: Data Link Layer Link Active not cleared in 1000 msec",
    "[9.0] pci 0000:5d:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]\n"
    "[9.1] pci 0000:5d:00.0: BAR 1: assigned [mem 0x20000000000-0x21fffffffff 64bit pref]",
    "[9.0] pci 0000:17:00.0: BAR 7: failed to assign [mem size 0x00020000 64bit pref]",
    "[9.0] pci 0000:17:00.0: BAR 0: failed to assign [mem size 0x00020000 64bit pref]",
    "[9.0] DMAR: IOMMU enabled\n[9.0] DMAR: DRHD base: 0x000000d37fc000 flags: 0x0",
    "[9.0] AMD-Vi: Interrupt remapping enabled",
    "[9.0] soft offline: 0x3fff8: page already poisoned",
    "[9.0] INFO: NMI handler (perf_event_nmi_handler) took too long to run: 1.2 msecs\n[9.1] NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    "[9.0] bond0: (slave ens1f0np0): link status up again after 200 ms",
    "[9.0] nvidia-uvm: Loaded the UVM driver, major device number 505.",
    "[9.0] BERT: Boot Error Record Table support is disabled. Enable it by using bert_enable as kernel parameter.",
    "Mar  3 12:00:01 gpu-07 runner[88]: the log had: Uhhuh. NMI received for unknown reason 3d on CPU 0.",
    "[2025-11-12T10:22:44.101] error: Setting node gpu-07 state to DOWN with reason:Not responding",
    'test_parse.py::test_xid79 PASSED: "NVRM: Xid (PCI:0000:00:00): 79, GPU has fallen off the bus"',
    "When a node reports `NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.` drain it.",
    '再次看到 XID 48（"NVRM: Xid (PCI:0000:1a:00): 48, pid=1, Double Bit ECC Error"）时复位。',
    "we had xid (79) on 0000:9b:00 : 3 times",
    "[Nov 12 2025 11:00:00] [INFO] [tid 88] received a signal to stop, fabric manager is exiting",
]


@each("text", QUIET)
def test_lines_that_tell_of_nothing(text: str) -> None:
    quiet = {*kernel_log.KERNEL_EVENTS, *kernel_log.DAEMON_EVENTS} - {"link_carrier"}
    assert [o for o in parse(lines_of(text), Context("x")) if o.fact in quiet and o.status is Status.OK] == []


@pytest.mark.parametrize(
    ("between", "since", "told"),
    [
        (["[40.0] docker0: port 1 entered forwarding state"], {}, (61_000, False)),
        (["[40.0] docker0: port 1 entered forwarding state"], {4: 1}, (None, None)),  # one may have been folded between
        ([], {3: 1}, (61_000, False)),  # nothing stands between
    ],
)
def test_a_link_whose_return_may_be_a_folded_one_was_away_for_nobody_knows_how_long(
    between: list[str], since: dict[int, int], told: tuple[int | None, bool | None]
) -> None:
    link = "mlx5_core 0000:5d:00.0 ib6: Link"
    lines = [f"[2.0] {link} up", f"[9.0] {link} down", *between, f"[70.0] {link} up"]
    found = of(parse(lines_of("\n".join(lines)), Context(since=since)), "link_carrier")
    assert [(e.get("away_ms"), e.get("brief")) for _, e in found if e.get("state") == "down"] == [told]


def test_every_event_has_a_story() -> None:
    told = {story.fact for story in STORIES} | {
        "xid",
        "fm_error",
        "fm_version_mismatch",
    }  # these have tests of their own
    assert told == {*kernel_log.KERNEL_EVENTS, *kernel_log.DAEMON_EVENTS, *kernel_log.UNCOVERED}
