"""Message bodies of XIDs: what is read, what never is, and that a cut line never says something else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.catalog.decode import decode, decode_sxid, text_belongs_to
from knowledge.facts import vocabulary
from knowledge.observation import Scalar
from tests.cases import each

Fields = dict[str, Scalar]

SAMPLES: list[tuple[int, str, Fields]] = [
    (13, "Graphics SM Warp Exception on (GPC 3, TPC 7, SM 1): Misaligned Address",
     {"exception_kind": "warp", "gpc": 3, "tpc": 7, "sm": 1, "exception": "Misaligned Address"}),
    (13, "Graphics SM Global Exception on (GPC 0, TPC 2): Physical Multiple Warp Errors",
     {"exception_kind": "global", "gpc": 0, "tpc": 2, "exception": "Physical Multiple Warp Errors"}),
    (13, "Graphics Exception: ESR 0x51D730=0xc04000b 0x51d734=0x24",
     {"exception_kind": "graphics", "esr": "0x51d730=0xc04000b 0x51d734=0x24"}),
    (13, "Graphics Exception: Shader Program Header 9 Error",
     {"exception_kind": "graphics", "exception": "Shader Program Header 9 Error"}),
    (13, "Graphics Exception: ChID 001f, Class 0000c597, Offset 00001614, Data 00000001",
     {"exception_kind": "graphics", "channel": 31, "class_id": "0xc597", "offset": "0x1614", "data": "0x1"}),
    (13, "0007 00000000 00009097 000015e0 00000011 00000104",
     {"channel": 7, "class_id": "0x9097", "offset": "0x15e0", "data": "0x11"}),
    (31, "channel 0x0100001f, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC4 GPCCLIENT_T1_9 faulted @ 0x7f11_ab402000. "
         "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
     {"channel": 0x0100001F, "engine": "GRAPHICS", "client": "GPCCLIENT_T1_9", "gpc": 4, "address": "0x7f11ab402000",
      "fault_type": "FAULT_PDE", "access_type": "ACCESS_TYPE_VIRT_WRITE", "intr": "0x0"}),
    (31, "Ch 00000012, intr 10000000. MMU Fault: ENGINE CE3 HUBCLIENT_CE1 faulted @ 0x0_00a00000. "
         "Fault is of type FAULT_INFO_TYPE_UNSUPPORTED_KIND ACCESS_TYPE_WRITE",
     {"channel": 18, "engine": "CE3", "client": "HUBCLIENT_CE1", "address": "0xa00000", "intr": "0x10000000",
      "fault_type": "FAULT_INFO_TYPE_UNSUPPORTED_KIND", "access_type": "ACCESS_TYPE_WRITE"}),
    (31, "Ch 0000000f, engmask 00000121, intr 10000000",
     {"channel": 15, "engmask": "0x121", "intr": "0x10000000"}),
    (32, "Channel ID 0000001a intr0 00040000", {"channel": 26, "intr": "0x40000"}),
    (32, "channel 0x00000005 intr1 00000004 HCE_DBG0 00000300 HCE_DBG1 0000118e",
     {"channel": 5, "intr1": "0x4"}),
    (43, "Ch 00000020, engmask 00000101", {"channel": 32, "engmask": "0x101"}),
    (45, "Ch 00000003 caused by previous Xid 149", {"channel": 3, "caused_by": 149}),
    (45, "channel 0x0000001c", {"channel": 28}),
    (48, "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at physAddr 0x2f00aa40 "
         "partition 11, subpartition 1.",
     {"location": "framebuffer", "unit": "framebuffer", "address": "0x2f00aa40", "partition": 11, "subpartition": 1}),
    (48, "An uncorrectable ECC error has been detected on GPU in GSP-RISCV location 3",
     {"location": "sram", "unit": "GSP-RISCV"}),
    (63, "Row Remapper: New row (0x00000000012ab3c0) marked for remapping, reset gpu to activate.",
     {"mechanism": "row_remapper", "address": "0x12ab3c0", "repair_state": "pending"}),
    (63, "Dynamic Page Retirement: New page retired, reboot to activate (0x00000000000c11f2).",
     {"mechanism": "page_retirement", "address": "0xc11f2", "repair_state": "pending"}),
    (64, "Row Remapper Error: (0x0000000311ec0180) - All reserved rows for bank are remapped",
     {"mechanism": "row_remapper", "address": "0x311ec0180", "repair_state": "failed", "failure": "bank_full",
      "spares_exhausted": True}),
    (64, "Row Remapper: (0x0000000311ec0180) - Attempting to remap a row that is already pending remapping. "
         "Remapping will occur when the GPU is reset",
     {"mechanism": "row_remapper", "address": "0x311ec0180", "repair_state": "failed", "failure": "already_pending"}),
    (64, "DRAM Retirement failed due to no spare for retirement at 0x0000000000045670",
     {"mechanism": "dram_retirement", "address": "0x45670", "repair_state": "failed", "failure": "no_spare",
      "spares_exhausted": True}),
    (64, "Dynamic Page Retirement: FATAL, unable to retire page (0x3fdf5e)",
     {"mechanism": "page_retirement", "address": "0x3fdf5e", "repair_state": "failed", "failure": "untold"}),
    (64, "Row Remapper: Failed to remap row (0x0000000311ec0180)",
     {"mechanism": "row_remapper", "address": "0x311ec0180", "repair_state": "failed", "failure": "untold"}),
    (64, "Row Remapper Error: (0x0000000311ec0180) - Att",
     {"mechanism": "row_remapper", "address": "0x311ec0180", "repair_state": "failed"}),
    (69, "Class Error: ChId 000c, Class 0000c7c0, Offset 000002b4, Data ffffffff, ErrorCode 00000004",
     {"channel": 12, "class_id": "0xc7c0", "offset": "0x2b4", "data": "0xffffffff", "error_code": "0x4"}),
    (74, "NVLink: fatal error detected on link 9(0x200010, 0x0, 0x0, 0x20000, 0x0, 0x0, 0x0)",
     {"link": 9, "registers": "0x200010 0x0 0x0 0x20000 0x0 0x0 0x0", "reg1_bits": "4,21", "reg4_bits": "17",
      "link_class": "ecc_parity",
      "link_meaning": "register 1 bit 4: ECC or parity error in the link hardware; register 1 bit 21: marginal signal "
                      "integrity of the channel; register 4 bit 17: follows another error"}),
    (74, "NVLink: fatal error detected on link 2(0x4, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)",
     {"link": 2, "registers": "0x4 0x1 0x0 0x0 0x0 0x0 0x0", "reg1_bits": "2", "reg2_bits": "0",
      "link_class": "unknown", "unknown_bits": "1:2,2:0",
      "link_meaning": "register 1 bit 2: not published by NVIDIA; register 2 bit 0: not published by NVIDIA"}),
    (74, "NVLink: fatal error detected on link 11", {"link": 11}),
    (79, "GPU has fallen off the bus.", {"bus_lost": True}),
    (92, "Disabling ECC single-bit error interrupts in framebuffer at logical partition 6, due to high error rate",
     {"location": "framebuffer", "partition": 6}),
    (92, "SM SBE interrupt storm detected", {"location": "sram"}),
    (94, "Contained: CE User Channel (0x9). RST: No, D-RST: Yes",
     {"containment": "contained", "unit": "CE User Channel", "unit_arguments": "0x9", "reset_required": False,
      "drain_required": True}),
    (95, "Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No",
     {"containment": "uncontained", "unit": "LTC TAG", "unit_arguments": "0x2,0x1", "reset_required": True,
      "drain_required": False}),
    (95, "Uncontained: FBHUB. RST: Yes, D-RST: No",
     {"containment": "uncontained", "unit": "FBHUB", "reset_required": True, "drain_required": False}),
    (95, "Uncontained: DRAM (0x3,0x1). physAddr: 0x1f4a8000 RST: Yes, D-RST: No",
     {"containment": "uncontained", "unit": "DRAM", "unit_arguments": "0x3,0x1", "address": "0x1f4a8000",
      "reset_required": True, "drain_required": False}),
    (94, "Ch 0000000b", {"channel": 11}),
    (109, "Ch 0000000c, errorString CTX SWITCH TIMEOUT, Info 0x3c004",
     {"channel": 12, "error": "CTX SWITCH TIMEOUT", "info": "0x3c004"}),
    (109, "channel 0x00000011, CTX SWITCH TIMEOUT, Info 0x14c00f",
     {"channel": 17, "error": "CTX SWITCH TIMEOUT", "info": "0x14c00f"}),
    (119, "Timeout waiting for RPC from GSP! Expected function 76 (GSP_RM_CONTROL) (0x20800a4c 0x4).",
     {"function": 76, "function_name": "GSP_RM_CONTROL", "parameters": "0x20800a4c 0x4"}),
    (119, "Timeout after 45s of waiting for RPC response from GPU2 GSP! Expected function 4097 (GSP_INIT_DONE) (0x0 0x0).",
     {"seconds": 45, "gpu_index": 2, "function": 4097, "function_name": "GSP_INIT_DONE", "parameters": "0x0 0x0"}),
    (119, "Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 10 (FREE) sequence 512 (0xc1d 0x0).",
     {"seconds": 6, "gpu_index": 1, "function": 10, "function_name": "FREE", "sequence": 512, "parameters": "0xc1d 0x0"}),
    (120, "GSP task exception: load access page fault (cause:0xd) @ pc:0x1a2b3c, partition:4#0, task:3, gfid: 0",
     {"gsp_context": "task", "exception": "load access page fault", "cause": "0xd", "pc": "0x1a2b3c",
      "gsp_partition": "4#0", "task": 3, "gfid": 0}),
    (120, "GSP kernel exception: store access page fault (cause:0xf) @ pc:0xffffffff93003d42, partition:2#1",
     {"gsp_context": "kernel", "exception": "store access page fault", "cause": "0xf", "pc": "0xffffffff93003d42",
      "gsp_partition": "2#1"}),
    (120, "GSP task watchdog timeout @ pc:0x1b66396, partition:4#0, task:1",
     {"gsp_context": "task", "exception": "watchdog timeout", "pc": "0x1b66396", "gsp_partition": "4#0", "task": 1}),
    (120, "Poison error in GSP.", {"exception": "poison"}),
    (136, "NVLink: Link training failed for link 5(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
     {"link": 5, "registers": "0x1 0x0 0x0 0x0 0x0 0x0 0x0"}),
    (136, "NVLink: Link training failed for links 0x3c(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
     {"links": "0x3c", "registers": "0x1 0x0 0x0 0x0 0x0 0x0 0x0"}),
    (140, "An uncorrectable ECC error detected (possible firmware handling failure) DRAM:2, LTC:0, MMU:-1, PCIE:0",
     {"ecc_dram": 2, "ecc_ltc": 0, "ecc_mmu": -1, "ecc_pcie": 0}),
    (143, "Error status 0x65 while polling for FSP boot complete, 0xffffffff, 0x0, 0x0, 0x0, 0x0",
     {"init_stage": "fsp_boot", "init_status": "0x65"}),
    (143, "FSP fuse error check has failed. Status = 0x1.", {"init_stage": "fsp_fuse", "init_status": "0x1"}),
    (145, "RLW_SRC_TRACK Nonfatal XC1 i0 Link 07 (0x0400e0e2 0x00000008 0x00000000 0x00000000 0x00000000 0x0000001f)",
     {"unit": "RLW_SRC_TRACK", "printed_severity": "Nonfatal", "cross_contained": True, "injected": False, "link": 7,
      "intrinfo": "0x0400e0e2", "error_status": "0x00000008",
      "debug_data": "0x00000000 0x00000000 0x00000000 0x0000001f"}),
    (149, "NETIR  Fatal   XC0 i1 Link -1 (0x000fe406 0x00000000)",
     {"unit": "NETIR", "printed_severity": "Fatal", "cross_contained": False, "injected": True,
      "intrinfo": "0x000fe406", "error_status": "0x00000000"}),
    (149, "NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x0000000a]",
     {"unit": "NETIR_LINK_EVT", "printed_severity": "Fatal", "cross_contained": True, "injected": True, "link": 1,
      "intrinfo": "0x0000000a"}),
    (150, "MSE degraded Fatal XC0 i0 Link -1 (0x00000000 0xffffffff 0x00000000 0x00000000 0x00000000 0x00000000)",
     {"unit": "MSE degraded", "printed_severity": "Fatal", "cross_contained": False, "injected": False,
      "intrinfo": "0x00000000", "error_status": "0xffffffff",
      "debug_data": "0x00000000 0x00000000 0x00000000 0x00000000"}),
    (145, "RLW_REMAP Nonfatal XC0 i0 Link 02",
     {"unit": "RLW_REMAP", "printed_severity": "Nonfatal", "cross_contained": False, "injected": False, "link": 2}),
    (155, "NVLPW_CTRL Fatal XC0 i0 Link 03 : Link Down While Active.",
     {"unit": "NVLPW_CTRL", "printed_severity": "Fatal", "cross_contained": False, "injected": False, "link": 3,
      "down_while_active": True}),
    (154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
     {"recovery_from": 0, "recovery_to": 1, "recovery_text": "GPU Reset Required", "recovery": "gpu_reset"}),
    (154, "GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
     {"recovery_from": 0, "recovery_to": 2, "recovery_text": "OS Reboot", "recovery": "node_reboot"}),
    (154, "GPU recovery action changed from 0x4 (Drain and Reset) to 0x5 (Recover IMEX Domain)",
     {"recovery_from": 4, "recovery_to": 5, "recovery_text": "Recover IMEX Domain", "recovery": "recover_imex"}),
    (154, "GPU recovery action changed from 0x0 (None) to 0x9 (Something New)",
     {"recovery_from": 0, "recovery_to": 9, "recovery_text": "Something New", "recovery": "unknown"}),
    (154, "GPU recovery action changed from 0x0 (None) to", {"recovery_from": 0}),
    (156, "Retiring TPC 4 from GPC 2 with a spare from the same GPC.",
     {"repair_target": "tpc", "repair_index": 4, "container": "GPC", "container_index": 2, "repair_state": "pending"}),
    (157, "Unable to retire TPC 7 from GPC 3 as there are no spare TPCs available.",
     {"repair_target": "tpc", "repair_index": 7, "container": "GPC", "container_index": 3, "repair_state": "failed",
      "spares_exhausted": True}),
    (160, "Marking Channel 3 in FBPA 2 along with its pair for repair. Perform node reboot to activate repair.",
     {"repair_target": "channel", "repair_index": 3, "container": "FBPA", "container_index": 2,
      "activation": "node_reboot", "repair_state": "pending"}),
    (161, "Repairing Channel failed as there are no more spare channels.",
     {"repair_target": "channel", "repair_state": "failed", "spares_exhausted": True}),
    (171, "HBM, Uncorrectable DRAM error in FBPA 6 subpartition 0 physAddr 0x13fe7fbde0",
     {"location": "framebuffer", "unit": "HBM", "address": "0x13fe7fbde0", "partition": 6, "subpartition": 0}),
    (172, "SM ICACHE, Uncorrectable SRAM error in GPC 7 TPC 6",
     {"location": "sram", "unit": "SM ICACHE", "gpc": 7, "tpc": 6}),
    (175, "GPU memory subsystem timeout (type 2) detected", {"timeout_type": 2}),
    (62, "1f3a6a66 00002100 00000000 20662342 20662ba6", {"words": "1f3a6a66 00002100 00000000 20662342 20662ba6"}),
    (8, "Channel 00000028", {"channel": 40}),
    (53, "CMDre 00000000 00000080 00000000 00000005 00000005", {}),
    (71, "NVLink: fatal error detected on link 6", {"link": 6, "text_conflict": 74}),
    (1, "GSP task exception: load access fault",
     {"gsp_context": "task", "exception": "load access fault", "text_conflict": 120}),
]  # fmt: skip


@each(("code", "text", "fields"), SAMPLES)
def test_bodies(code: int, text: str, fields: Fields) -> None:
    assert decode(code, text) == fields


@given(st.integers(0, 300), st.text(max_size=300))
def test_no_text_raises(code: int, text: str) -> None:
    check_declared("xid", decode(code, text))


@given(st.sampled_from(SAMPLES), st.integers(0, 200), st.text(max_size=20))
def test_no_damage_raises(sample: tuple[int, str, Fields], at: int, junk: str) -> None:
    code, text, _ = sample
    check_declared("xid", decode(code, text[:at] + junk + text[at:]))


def check_declared(fact: str, fields: Fields) -> None:
    kinds = {"int": int, "str": str, "bool": bool, "float": float}
    declared = vocabulary()[fact].fields
    for name, value in fields.items():
        assert type(value) is kinds[declared[name]], (name, value)


@each(("code", "text", "fields"), SAMPLES)
def test_a_line_cut_between_words_never_says_something_else(code: int, text: str, fields: Fields) -> None:
    """A text value may be shorter; everything else is the same or absent."""
    cuts = [i for i, c in enumerate(text) if c == " "]
    for cut in cuts:
        for name, value in decode(code, text[:cut]).items():
            assert name in fields, (text[:cut], name)
            whole = fields[name]
            same = value == whole or (isinstance(value, str) and str(whole).startswith(value))
            assert same, (text[:cut], name, value, whole)


@given(st.sampled_from(SAMPLES), st.data())
def test_a_line_cut_anywhere_never_turns_a_verdict(sample: tuple[int, str, Fields], data: st.DataObject) -> None:
    """Words that lead to another action are either whole or absent."""
    code, text, fields = sample
    cut = decode(code, text[: data.draw(st.integers(0, len(text)))])
    for name in ("location", "repair_state", "spares_exhausted", "recovery", "link_class", "reset_required",
                 "drain_required", "containment", "mechanism", "intrinfo", "error_status", "bus_lost"):  # fmt: skip
        if name in cut:
            assert cut[name] == fields[name], (text, cut)


@given(
    st.integers(0, 0xFFFFFFFF),
    st.sampled_from(["Ch {:08x}", "channel 0x{:08x}", "Channel ID {:08x}", "Channel {:08x}"]),
)
def test_channels_are_hexadecimal(number: int, form: str) -> None:
    assert decode(45, form.format(number)) == {"channel": number}


@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=7, max_size=7), st.integers(0, 17))
def test_registers_round_trip(words: list[int], link: int) -> None:
    body = f"NVLink: fatal error detected on link {link}({', '.join(map(hex, words))})"
    fields = decode(74, body)
    assert fields["link"] == link
    assert [int(w, 16) for w in str(fields["registers"]).split()] == words
    for number, word in enumerate(words, 1):
        bits = str(fields.get(f"reg{number}_bits", ""))
        assert sum(1 << int(b) for b in bits.split(",") if b) == word


def test_a_cut_group_of_registers_has_no_class() -> None:
    fields = decode(74, "NVLink: fatal error detected on link 4(0x100000, 0x0, 0x10000")
    assert fields["link"] == 4
    assert "link_class" not in fields


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_number_of_154_counts(before: int, after: int) -> None:
    fields = decode(154, f"GPU recovery action changed from 0x{before:x} (None) to 0x{after:x} (None)")
    names = (
        "none",
        "gpu_reset",
        "node_reboot",
        "drain_p2p",
        "drain_and_reset",
        "recover_imex",
        "bus_reset",
        "system_reboot",
    )
    assert fields.get("recovery") == (names[after] if after < len(names) else "unknown")
    assert (fields["recovery_from"], fields["recovery_to"]) == (before, after)


@each(("code", "text", "fields"), SAMPLES)
def test_each_text_is_known_as_its_own(code: int, text: str, fields: Fields) -> None:
    assert text_belongs_to(code, text) == fields.get("text_conflict")


@each(
    ("text", "fields"),
    [
        ("Fatal, Link 28 sourcetrack timeout error (First)", {"severity_word": "Fatal", "link": 28, "first": True}),
        ("Severity 1 Engine instance 60 Sub-engine instance 00", {"engine_instance": 60, "sub_engine_instance": 0}),
        ("Data {0x10000000, 0x00000000}", {}),
        (
            "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61",
            {"severity_word": "non-fatal", "link": 61, "physical_id": 3},
        ),
    ],
)
def test_switch_lines(text: str, fields: Fields) -> None:
    assert decode_sxid(text) == fields


@given(st.text(max_size=200))
def test_no_switch_line_raises(text: str) -> None:
    check_declared("sxid", decode_sxid(text))
