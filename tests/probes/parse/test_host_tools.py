"""``vmstat``, ``iostat -x``, ``mount`` and ``/proc/mounts``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Status
from probes.base import Context, DocumentFormat
from probes.parse import iostat, mounts, vmstat
from tests.probes.parse.smi_case import CONTEXT, capture


def told(form: DocumentFormat, text: str) -> dict[str, object]:
    return {o.fact: o.value for o in form.parse(text, CONTEXT)}


def test_vmstat_leaves_the_mean_since_the_boot_out() -> None:
    text = capture("other/vmstat.txt")
    got = told(vmstat.FORMAT, text)
    assert vmstat.FORMAT.sniff(text) == 92
    assert (got["node.swap.in"], got["node.swap.out"], got["node.cpu.iowait"]) == (3.0, 5.0, 35.0)
    assert got["node.tasks.blocked"] == 6


def test_iostat_tells_the_busiest_disk_of_the_last_report() -> None:
    text = capture("other/iostat.txt")
    got = told(iostat.FORMAT, text)
    assert iostat.FORMAT.sniff(text) == 92
    assert (got["node.disk.busiest"], got["node.disk.busiest.busy"], got["node.cpu.iowait"]) == ("sdb", 100.0, 38.22)
    assert got["node.disk.busiest.await"] == 900.0, "of a hundred reads and three hundred writes"
    assert {o.subject.id for o in iostat.FORMAT.parse(text, Context("x"))} == {"n1"}, "its title names the machine"


@given(
    st.sampled_from(
        [(vmstat.FORMAT, "other/vmstat.txt"), (iostat.FORMAT, "other/iostat.txt"), (mounts.FORMAT, "other/mounts.txt")]
    ),
    st.integers(8, 30),
)
def test_half_a_line_at_the_end_says_that_the_listing_ends_early(
    case: tuple[DocumentFormat, str], left_off: int
) -> None:
    text = capture(case[1]).rstrip()[:-left_off]
    assert any(o.status is Status.FAILED and "ends early" in o.detail for o in case[0].parse(text, CONTEXT))


@given(
    st.sampled_from(["ro", "rw"]), st.sampled_from(["", ",errors=remount-ro"]), st.sampled_from(["", ",emergency_ro"])
)
def test_both_tables_of_mounts_tell_the_same(mode: str, on_error: str, stopped: str) -> None:
    options = f"{mode},relatime{on_error}{stopped}"
    both = [f"/dev/sda1 on / type ext4 ({options})\n", f"/dev/sda1 / ext4 {options} 0 0\n"]
    assert [mounts.FORMAT.sniff(text) for text in both] == [91, 91]
    one, two = (told(mounts.FORMAT, text) for text in both)
    assert one == two
    assert one["fs.turned_read_only"] is (bool(stopped) or (mode == "ro" and bool(on_error)))


def test_a_share_that_is_mounted_for_reading_did_not_turn() -> None:
    got = {(o.subject.id, o.fact): o.value for o in mounts.FORMAT.parse(capture("other/mounts.txt"), CONTEXT)}
    assert [got[point, "fs.read_only"] for point in ("/", "/home", "/scratch")] == [True, True, False]
    assert [got[point, "fs.turned_read_only"] for point in ("/", "/home", "/scratch")] == [True, False, False]
    assert not mounts.FORMAT.sniff("UUID=1234 / ext4 defaults 0 1\nswap none swap sw 0 0\n"), "an fstab is another file"
