"""Chinese as it is typed: what is read as another word, and what is left as it is."""

from __future__ import annotations

import re

from assistant.intent import han
from assistant.intent.parse import understand
from assistant.intent.slots import slots
from knowledge.compiled import shard
from tests.cases import each


@each(
    ("written", "meant"),
    [
        ("现存不够用了", "显存不够用了"),
        ("节点调卡了", "节点掉卡了"),
        ("还能不能继序用", "还能不能继续用"),
        ("利永率上不去", "利用率上不去"),
        ("怎么重至gpu", "怎么重置gpu"),
    ],
)
def test_a_word_that_only_sounds_right_is_mended(written: str, meant: str) -> None:
    assert han.repair(written)[0] == meant


@each(
    "right",
    [
        "显卡主要问题",
        "温度上限是多少",
        "始终正常",
        "用的是终端",
        "他回复了",
        "适用于哪些卡",
        "晚上闲着的卡",
        "后面就正常了",
    ],
)
def test_a_word_that_is_right_stays(right: str) -> None:
    assert han.repair(right) == (right, ())


def test_written_chinese_of_the_glossary_stays() -> None:
    texts = [t for e in shard("glossary") for t in (e["term"]["zh"], e["text"]["zh"])]
    mended = [han.repair(part)[1] for t in texts for part in re.findall("[\u4e00-\u9fff]{2,}", han.simplified(t))]
    assert len(mended) > 100
    assert [m for m in mended if m] == []


def test_traditional_characters_are_read_as_simplified() -> None:
    assert han.simplified("顯卡溫度過高，還能繼續用嗎") == "显卡温度过高，还能继续用吗"
    query = understand("dgx-7報了xid 48接著63，還能繼續用嗎")
    assert query.slots.xid == (48, 63)
    assert query.text == "dgx-7報了xid 48接著63，還能繼續用嗎"  # shown as it was said


def test_what_was_mended_is_told() -> None:
    assert ("现存", "显存") in understand("现存爆了").fixed


@each(
    ("said", "slot", "values"),
    [
        ("昨天下午三点掉的", "since", ("yesterday 15:00",)),
        ("凌晨2点半报错", "since", ("02:30",)),
        ("昨晚3点挂的", "since", ("today 03:00",)),
        ("昨晚11点挂的", "since", ("yesterday 23:00",)),
        ("过去二十四小时的告警", "since", ("24h",)),
        ("最近半小时", "since", ("30m",)),
        ("上个月坏了几次", "since", ("30d",)),
        ("周三开始掉卡", "since", ("wednesday",)),
        ("慢了一点", "since", ()),
        ("重启之后少了一张卡", "since", ()),
        ("自重启以来", "since", ("boot",)),
        ("自从上次正常以来改了什么", "since", ("good",)),
        ("第二块掉了", "gpu", (2,)),
        ("第一块硬盘满了", "gpu", ()),
        ("那5号呢", "gpu", (5,)),
        ("3号卡ecc在涨", "gpu", (3,)),
        ("4242这个进程", "pid", (4242,)),
        ("8个进程", "pid", ()),
        ("又报79了", "xid", (79,)),
        ("报了43次", "xid", ()),
        ("881号作业", "job", ("881",)),
    ],
)
def test_slots_as_chinese_says_them(said: str, slot: str, values: tuple[object, ...]) -> None:
    assert getattr(slots(said).slots, slot) == values


def test_a_log_line_quoted_in_a_chinese_frame_is_answered_in_chinese() -> None:
    assert understand("GPU 节点 NotReady，kubelet 日志 PLEG is not healthy").lang == "zh"
