from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge import waits
from knowledge.facts import vocabulary
from tests.cases import each

# Stacks as the kernel has them, outermost first.
STACKS = {
    "nfs": "do_syscall_64 ksys_read vfs_read nfs_file_read generic_file_read_iter filemap_read folio_wait_bit_common io_schedule schedule",
    "lustre": "ksys_read vfs_read ll_file_read_iter ll_file_io_generic cl_io_loop vvp_io_read_start filemap_read folio_wait_bit_common schedule",
    "shared_fs": "ksys_read vfs_read fuse_file_read_iter filemap_read fuse_readahead request_wait_answer schedule",
    "page_cache": "asm_exc_page_fault exc_page_fault handle_mm_fault __do_fault filemap_fault folio_wait_bit_common io_schedule schedule",
    "swap": "exc_page_fault handle_mm_fault do_swap_page folio_wait_bit_common io_schedule schedule",
    "reclaim": "handle_mm_fault alloc_anon_folio __alloc_pages_slowpath try_to_free_pages shrink_node folio_wait_bit_common schedule",
    "driver": "__x64_sys_ioctl nvidia_unlocked_ioctl nvidia_ioctl rm_ioctl os_acquire_mutex down __down_common schedule_timeout schedule",
    "lock": "__x64_sys_futex do_futex futex_wait __futex_wait futex_do_wait schedule __schedule",
    "sleep": "__x64_sys_clock_nanosleep common_nsleep_timens hrtimer_nanosleep do_nanosleep schedule",
    "pipe": "ksys_read vfs_read anon_pipe_read schedule __schedule",
    "network": "__sys_recvfrom sock_recvmsg inet_recvmsg tcp_recvmsg tcp_recvmsg_locked sk_wait_data wait_woken schedule_timeout schedule",
    "poll": "__x64_sys_epoll_wait do_epoll_wait ep_poll schedule_hrtimeout_range_clock schedule",
    "child": "__do_sys_vfork kernel_clone wait_for_completion_state __wait_for_common schedule_timeout schedule",
    "quota": "exit_to_user_mode_loop task_work_run throttle_cfs_rq_work schedule",
    "writeback": "__x64_sys_fsync do_fsync vfs_fsync_range ext4_sync_file file_write_and_wait_range folio_wait_writeback io_schedule schedule",
    "storage": "ksys_pread64 vfs_read xfs_file_dio_read iomap_dio_rw __iomap_dio_rw io_schedule schedule",
    "kernel_lock": "exc_page_fault lock_mm_and_find_vma down_read_killable rwsem_down_read_slowpath schedule_preempt_disabled schedule",
    "unknown": "do_syscall_64 something_new schedule",
}


@each("kind", STACKS)
def test_kind_of_a_stack(kind: str) -> None:
    stack = STACKS[kind].split()
    assert waits.kind(stack, "S") == kind
    assert waits.kind(stack, "R") == ("quota" if kind == "quota" else "preempted")
    assert (found := waits.wait_of(waits.named(stack))) is None or found.id != waits.PLUMBING


def test_function_that_is_named() -> None:
    assert waits.named(STACKS["driver"].split()) == "os_acquire_mutex"
    assert waits.named(STACKS["lock"].split()) == "futex_do_wait"
    assert waits.named(["__schedule"]) == "__schedule"
    assert waits.named([]) == ""
    assert waits.kind([], "S") == "unknown"


def test_facts_know_every_kind() -> None:
    spec = vocabulary()["offcpu.kind"]
    assert set(spec.values) == set(waits.waits()) - {waits.PLUMBING}


@given(st.lists(st.text(max_size=20), max_size=10), st.text(max_size=1))
def test_any_stack_has_a_kind(stack: list[str], state: str) -> None:
    assert waits.kind(stack, state) in waits.waits()
    assert waits.named(stack) in (*stack, "")
