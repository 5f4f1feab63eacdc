"""How many of a kind are in order, and which GPUs are meant: in any order of words, in digits and in words, in both languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.intent.parse import understand
from assistant.intent.pointed import pointed
from assistant.intent.shares import many, shares
from tests.cases import each

_EN = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ZH = "零一二三四五六七八九十"
# {n} of {m} are so: {s}
_SAID_EN = (
    "{n} of {m} {t} are {s}",
    "{n} out of the {m} {t} on that node are {s}",
    "{n}/{m} {t} {s}",
    "of the {m} {t} {n} are {s}",
    "{s} are {n} of our {m} {t}",
    "{m} {t} but only {n} are {s}",
    "{n} {t} are {s} out of {m}",
    "there are {m} {t}, {n} {s}",
)
_SAID_ZH = (
    "{m}个{t}里有{n}个{s}",
    "{t}{m}个里面{n}个{s}",
    "{m} 个{t}，{n} 个{s}",
    "{t}共{m}个，{n}个{s}",
    "{m}个{t}中{n}个是{s}了",
)
_THINGS_EN = {
    "port": "ib ports",
    "nvlink": "nvlinks",
    "psu": "power supplies",
    "fan": "chassis fans",
    "memory": "dimms",
}
_THINGS_ZH = {"port": "IB口", "nvlink": "nvlink", "psu": "电源", "fan": "风扇", "memory": "内存条"}
_STATES: dict[str, dict[bool, tuple[str, ...]]] = {
    "en": {True: ("up", "ok", "fine"), False: ("down", "dead", "failed")},
    "zh": {True: ("正常",), False: ("坏", "故障")},
}


@given(
    st.sampled_from(sorted(_THINGS_EN)),
    st.integers(2, 10),
    st.data(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["en", "zh"]),
)
def test_a_share_is_read_in_any_order_of_words(
    thing: str, whole: int, data: st.DataObject, good: bool, worded: bool, lang: str
) -> None:
    part = data.draw(st.integers(1, whole - 1))
    frame = data.draw(st.sampled_from(_SAID_EN if lang == "en" else _SAID_ZH))
    state = data.draw(st.sampled_from(_STATES[lang][good]))
    words = _EN if lang == "en" else _ZH
    n, m = (words[part], words[whole]) if worded and "/" not in frame else (str(part), str(whole))
    said = frame.format(n=n, m=m, t=(_THINGS_EN if lang == "en" else _THINGS_ZH)[thing], s=state)
    found = [one.phrase for one in shares(said)]
    assert found == [f"{whole - part if good else part} of {whole} {thing} down"], said


@each(
    "said, phrases",
    [
        ("all but one of the 8 ib ports are up", ["1 of 8 port down"]),
        ("all 8 IB ports are active", ["all 8 port up"]),
        ("both psus are ok", ["2 psu up"]),
        ("四个电源坏了一个", ["1 of 4 psu down"]),
        ("八卡里掉了一张", ["1 of 8 gpu down"]),
        ("nvlink 断了两条", ["2 nvlink down"]),
        ("lost 1 of 8 gpus", ["1 of 8 gpu down"]),
        # called by their numbers, measured, or GPUs with a reading of their own
        ("psu 2 of 4 failed", []),
        ("ib port 4 is down", []),
        ("nvlink 4 is down", []),
        ("机箱 3 号风扇坏了", []),
        ("7 of 8 gpus at 1980 MHz and one at 345 MHz", []),
        ("two gpus run at 101 C", []),
    ],
)
def test_what_is_counted_is_told_from_what_is_numbered(said: str, phrases: list[str]) -> None:
    assert [one.phrase for one in shares(said)] == phrases


def test_a_shortfall_is_about_so_many_things_that_nobody_named() -> None:
    told = {(o.fact, o.subject.id, o.value) for o in understand("6 of 8 IB ports are up, ok to start?").observations}
    assert told == {
        ("port.state", "unknown:?x2", "down"),
        ("node.ib.ports.active", "", 6),
        ("node.ib.ports.total", "", 8),
    }
    assert many(["2", "of", "8", "port", "down"]) == 2


@each(
    "said, meant",
    [
        ("two gpus are at 95 C, namely 2 and 7", "gpus 2 and gpu 7 are at 95 C"),
        ("three cards (1, 4, 6) are hot", "gpus 1, 4, 6 are hot"),
        ("gpus 0-3 at 61 C and 4 at 98 C", "gpus 0-3 at 61 C and gpu 4 at 98 C"),
        ("两张卡报 xid 119,分别是2和7", "2号和7号卡报 xid 119"),
        ("0到3号卡61度,4号98度", "0到3号卡61度,4号卡98度"),
        # nothing is pointed at
        ("7 of 8 gpus at 1980 MHz, and 1 at 345 MHz", "7 of 8 gpus at 1980 MHz, and 1 at 345 MHz"),
        ("one gpu shows xid 63: 4", "one gpu shows xid 63: 4"),
        ("three gpus are hot, 2 and 7", "three gpus are hot, 2 and 7"),
    ],
)
def test_gpus_that_are_named_later_stand_where_they_are_meant(said: str, meant: str) -> None:
    assert pointed(said) == meant


@each(
    "said, facts",
    [
        ("/home at 99% used, can the job write?", {("fs.used.share", "/home", 99.0)}),
        ("/scratch 的 inode 用完了", {("fs.inodes.used.share", "/scratch", 100.0)}),
        ("load average 380 on a 64 core box", {("node.load.1m", "", 380.0), ("node.load.per_cpu", "", 5.9375)}),
        ("内存1T用了1020G,swap也满了", {("node.memory.available.share", "", 0.0), ("node.swap.used.share", "", 100.0)}),
        ("ntp offset 7 minutes", {("node.time.offset", "", 420000.0)}),
        (
            "升级内核后 nvidia 驱动加载不了",
            {("node.driver.state", "", "not_loaded"), ("job.fails.since_change", "unknown:?", "system")},
        ),
        ("nvidia-smi 一直卡住没反应", {("node.driver.state", "", "unresponsive")}),
        ("the nvlink on gpu 3 keeps flapping", {("link.flapping", "unknown:?", True)}),
        ("corrected ecc on gpu 2 keeps climbing", {("gpu.ecc.corrected.growing", "index:2", True)}),
        (
            "gpus 1 and 5 report uncorrectable errors",
            {("gpu.ecc.uncorrected.seen", f"index:{n}", True) for n in (1, 5)},
        ),
        ("负载 20,机器 96 核,健康吗", {("node.load.1m", "", 20.0), ("node.load.per_cpu", "", 20 / 96)}),
        ("2 号卡 nvlink crc 错误不断增加", {("gpu.nvlink.errors.growing", "index:2", True)}),
        ("2 号电源没有输入", {("psu.state", "2 号电源", "input_lost")}),
        # nothing of these was said: no share above all of it, no number of a flag, no state of a server that is only named
        ("dcgmi diag -r 3 在5号卡内存测试失败", {("dcgm_diag", "index:5", None)}),
        (
            "checkpoint takes 11 minutes since we moved to the new nfs server",
            {("job.fails.since_change", "unknown:?", "storage")},
        ),
        ("step time is 300 ms on node3", set()),
    ],
)
def test_what_stands_around_a_gpu_is_read_and_nothing_is_invented(
    said: str, facts: set[tuple[str, str, object]]
) -> None:
    told = {(o.fact, o.subject.id, None if o.fact == "dcgm_diag" else o.value) for o in understand(said).observations}
    assert told == facts
