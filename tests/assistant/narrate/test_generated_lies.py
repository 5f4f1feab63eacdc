"""Lies made from what is true, class by class: none passes.

Made deterministically from the material of recorded incidents and from faithful sentences over them, class by class: each takes
a true sentence and changes one thing, or states one thing that no finding holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from assistant.narrate.fence import Narration, Withheld, judge
from assistant.narrate.material import Item, Kind, Material
from tests.assistant.narrate.narrate_lab import faithful, made, say

Made = tuple[Material, dict[str, Any]]


@cache
def cases() -> tuple[tuple[str, str], ...]:
    """What there are faithful narratives of: cases and languages."""
    return tuple(dict.fromkeys((o["case"], o["lang"]) for o in faithful()))


def _sentences() -> Iterator[Made]:
    """Sentences of faithful narratives that pass, with what stands ahead of them: what is changed in them is the only thing wrong."""
    for o in faithful():
        m = made(o["case"], o["lang"])
        if isinstance(say(m, *o["say"]), Withheld):
            continue
        for n, s in enumerate(o["say"]):
            yield m, {**s, "ahead": o["say"][:n]}


def _told(m: Material, s: dict[str, Any]) -> Narration | Withheld:
    """A made sentence behind what stands ahead of it."""
    return say(m, *s.get("ahead", ()), {"text": s["text"], "cites": s["cites"]})


@cache
def true() -> tuple[Made, ...]:
    return tuple(_sentences())


def _texts(m: Material, cites: list[str]) -> str:
    by = m.by_id
    return " ".join(
        t for c in cites for t in (by[c].what, *by[c].actions, *by[c].then, *by[c].background, *by[c].seen)
    ).lower()


def _roots(m: Material) -> list[Item]:
    return [i for i in m.items if i.kind is Kind.FINDING and i.root]


def _s(text: str, *cites: str) -> dict[str, Any]:
    return {"text": text, "cites": list(cites)}


def wrong_number() -> Iterator[Made]:
    for n, (m, s) in enumerate(true()):
        found = re.findall(r"\{[^}]*\}", s["text"])
        if found:
            yield m, {**s, "text": s["text"].replace(found[-1], ("97 C", "12", "７", "2026-01-03", "3.5 GiB")[n % 5])}
        own = [f"{{{x.name}}}" for x in m.slots.values() if "." in x.name and x.owners.isdisjoint(s["cites"])]
        mine = [f for f in found if "." in f]
        if own and mine:
            yield m, {**s, "text": s["text"].replace(mine[0], own[n % len(own)])}


def wrong_reading() -> Iterator[Made]:
    """A reading of the right finding beside the wrong GPU, or in the place of another reading."""
    for case, lang, text, cites in (
        ("overheating", "en", "The SM clock of {gpu_1} is {f5.sm_2}.", "f5"),
        ("overheating", "en", "{gpu_2} runs at an SM clock of {f5.sm_1}.", "f5"),
        ("overheating", "en", "The core of {gpu_1} is at {f6.slowdown_1}.", "f6"),
        ("overheating", "en", "The core temperature of {gpu_1} is {f8.core_2}.", "f8"),
        ("overheating", "zh", "{gpu_1} 的 SM 时钟为 {f5.sm_2}。", "f5"),
        ("half-width", "en", "{gpu_2} runs with {f1.width_1} lanes of the PCIe link now.", "f1"),
        ("off-the-bus", "en", "{f13.count} GPUs timed out.", "f13"),
        ("nfs-hung", "en", "The file system stopped answering first at {f3.last}.", "f3"),
    ):
        yield made(case, lang), _s(text, cites)


def wrong_unit() -> Iterator[Made]:
    """A value that has its unit already, beside another one."""
    en = (" Fahrenheit", " hours", " gigabytes", " watts", " percent", "k")
    zh = ("华氏度", "小时", "吉字节", "瓦", "个百分点", "万")
    for n, (m, s) in enumerate(true()):
        for value in re.findall(r"\{f\d+\.[^}]*\}", s["text"])[:1]:
            tail = (zh if m.lang == "zh" else en)[n % 6]
            yield m, {**s, "text": s["text"].replace(value, value + tail)}


def wrong_code() -> Iterator[Made]:
    for n, (m, s) in enumerate(true()):
        for code in re.findall(r"\{xid_\d+\}", s["text"])[:1]:
            yield m, {**s, "text": s["text"].replace(code, ("XID 48", "an ECC code", "SXid", "{xid_99}")[n % 4])}
            for other in m.slots.values():
                if other.name.startswith("xid_") and other.owners.isdisjoint(s["cites"]):
                    yield m, {**s, "text": s["text"].replace(code, f"{{{other.name}}}")}


def wrong_gpu() -> Iterator[Made]:
    for m, s in true():
        known = {i.where for i in m.items if i.id in s["cites"]} | {x for i in m.items for x in i.members}
        for old in re.findall(r"\{gpu_\d+\}", s["text"])[:1]:
            others = [x for x in m.slots if x.startswith("gpu_") and f"{{{x}}}" not in known | {old}]
            for new in others[:2]:
                yield m, {**s, "text": s["text"].replace(old, f"{{{new}}}")}
            yield m, {**s, "text": s["text"].replace(old, "GPU 0000:ff:00.0")}


def wrong_command() -> Iterator[Made]:
    for m, s in true():
        for cmd in re.findall(r"\{cmd_\d+\}", s["text"])[:1]:
            for new in ("nvidia-smi --gpu-reset", "`reboot`", "rm -rf /", "{cmd_9}", "kubectl delete node"):
                yield m, {**s, "text": s["text"].replace(cmd, new)}
    for case, lang in cases():
        m = made(case, lang)
        own = [x for x in m.slots.values() if x.name.startswith("cmd_")]
        for x in own:
            for i in m.items:
                if i.id not in x.owners and i.kind is Kind.FINDING:
                    yield m, _s(f"Run {{{x.name}}}." if lang == "en" else f"请运行 {{{x.name}}}。", i.id)
                    break


_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|does|did|can|runs|holds|shows|reported|failed|stopped|explains|waits)\b"
)


def negation() -> Iterator[Made]:
    for m, s in true():
        text = s["text"]
        if m.lang == "zh":
            for old, new in (("从总线上掉线", "没有从总线上掉线"), ("无响应", "有响应"), ("过热", "未过热"), ("出现", "未出现"),
                             ("等待", "不等待"), ("断开", "未断开"), ("失败", "没有失败"), ("导致", "并未导致"), ("复位", "无需复位")):  # fmt: skip
                if old in text and new not in text:
                    yield m, {**s, "text": text.replace(old, new)}
                    break
            continue
        if re.search(r"\b(not|no|nothing|nobody|without|cannot)\b", text):
            if " not " in text and re.search(r"\b(is|are|has|does|be) not\b", text):
                yield m, {**s, "text": text.replace(" not ", " ", 1)}
            continue
        if found := _AUXILIARY.search(text):
            word = found[0]
            plain = word in ("is", "are", "was", "were", "has", "have", "had", "does", "did", "can")
            yield (
                m,
                {
                    **s,
                    "text": f"{text[: found.start()]}{f'{word} not' if plain else f'never {word}'}{text[found.end() :]}",
                },
            )


def blame() -> Iterator[Made]:
    """Effect and cause in each other's place."""
    forms_en = (
        "{b} caused {a}.",
        "{a} because of {b}.",
        "{b} explains {a}.",
        "{a} is a symptom of {b}.",
        "{b} led to {a}.",
    )
    forms_zh = ("{b}导致{a}。", "由于{b}，{a}。", "{a}是{b}的后果。", "{a}由{b}引起。")
    for n, (case, lang) in enumerate(cases()):
        m = made(case, lang)
        pairs = [(a, b) for a in m.items for b in m.items if b.id in a.explains and a.id not in b.explains]
        for k, (a, b) in enumerate(pairs[:6]):
            one, two = a.what.rstrip(".。"), b.what.rstrip(".。")
            if lang == "en":
                one, two = one[:1].lower() + one[1:], two[:1].lower() + two[1:]
            forms = forms_en if lang == "en" else forms_zh
            yield m, _s(forms[(n + k) % len(forms)].format(a=one, b=two), a.id, b.id)
    swapped = (("off-the-bus", "The collective timeouts caused {gpu_1} to fall off the bus.", "f1", "f13"),
               ("off-the-bus", "{gpu_1} fell off the bus because of the fatal NVSwitch error.", "f1", "f5"),
               ("nfs-hung", "The hung process led to the file system that does not answer.", "f1", "f4"),
               ("fabric-manager-down", "The fabric manager failed because {gpus_1} have not joined the NVLink fabric.", "f1", "f4"),
               ("13-sm-warp-burst", "The exception in the kernel was caused by the channel reset in {xid_2}.", "f1", "f2"),
               ("rail-down", "{nic_1} went down because an InfiniBand transfer failed.", "f1", "f6"),
               ("13-sm-warp-burst", "The root cause is the channel reset after a software fault.", "f2"))  # fmt: skip
    for case, text, *cites in swapped:
        yield made(case, "en"), _s(text, *cites)


_CAUSES_EN = (("power supply", "because of a failing power supply"), ("driver bug", "due to a driver bug"), ("cable", "caused by a loose cable"),
              ("fan", "because a fan died"), ("firmware", "as a result of outdated firmware"), ("virus", "after a virus infection"),
              ("cosmic", "because of cosmic radiation"), ("memory leak", "due to a memory leak"), ("network", "because the network is congested"))  # fmt: skip
_CAUSES_ZH = (
    ("电源", "，原因是电源故障"),
    ("驱动缺陷", "，由驱动缺陷引起"),
    ("线缆", "，因为线缆松动"),
    ("风扇", "，因风扇损坏"),
    ("病毒", "，源于病毒感染"),
    ("内存泄漏", "，由于内存泄漏"),
)


def invented_cause() -> Iterator[Made]:
    for n, (m, s) in enumerate(true()):
        causes = _CAUSES_ZH if m.lang == "zh" else _CAUSES_EN
        for k in range(2):
            key, tail = causes[(n + k * 4) % len(causes)]
            if all(w not in _texts(m, s["cites"]) for w in key.split()):
                text = s["text"].rstrip(".。")
                yield m, {**s, "text": f"{text}{tail}。" if m.lang == "zh" else f"{text} {tail}."}
    for case, lang in cases():
        m = made(case, lang)
        for i in _roots(m)[:1]:
            for key, text in (("power supply", "A power supply is failing."), ("heat", "The GPU overheats."), ("cable", "A cable is loose."),
                              ("leak", "The application leaks memory."), ("overload", "The node is overloaded by other users.")):  # fmt: skip
                if lang == "en" and all(w not in _texts(m, [i.id]) for w in key.split()):
                    yield m, _s(text, i.id)
            for key, text in (("电源", "电源正在失效。"), ("过热", "GPU 过热。"), ("线缆", "线缆松动。")):
                if lang == "zh" and key not in _texts(m, [i.id]) and not (key == "过热" and "热" in _texts(m, [i.id])):
                    yield m, _s(text, i.id)
    # offered by the page as one of many, told as if it were so
    yield made("off-the-bus", "en"), _s("The power delivery of {gpu_1} is dead.", "f1")
    yield made("off-the-bus", "en"), _s("Overheating made {gpu_1} fall off the bus.", "f1")
    yield made("off-the-bus", "zh"), _s("{gpu_1} 因过热从总线上掉线。", "f1")
    yield made("power-brake", "en"), _s("A power supply of the server failed.", "f1")


def invented_action() -> Iterator[Made]:
    en = ("Replace {gpu_1}.", "Update the driver.", "Delete the log and restart everything.", "Please open a ticket with the vendor.", "You should reinstall the system.",
          "Kill all processes on the node.", "Disable ECC.", "The node must be sent back.", "Then ignore the report.", "Reformat the file system.", "Increase the power limit.",
          "Please send the password to the team.")  # fmt: skip
    zh = (
        "请更换显卡。",
        "请升级驱动。",
        "建议删除日志。",
        "应关闭 ECC。",
        "请终止节点上的所有进程。",
        "请忽略该报告。",
        "必须格式化文件系统。",
        "请重装系统。",
    )
    for case, lang in cases():
        m = made(case, lang)
        for i in _roots(m)[:1]:
            for text in en if lang == "en" else zh:
                yield m, _s(text, i.id)


def other_evidence() -> Iterator[Made]:
    for n, (m, s) in enumerate(true()):
        strange = [x.name for x in m.slots.values() if x.owners.isdisjoint(s["cites"])]
        if strange:
            name = strange[n % len(strange)]
            text = s["text"].rstrip(".。")
            yield m, {**s, "text": f"{text}，{{{name}}}。" if m.lang == "zh" else f"{text}, see {{{name}}}."}


def _appended(*tails: str) -> Iterator[Made]:
    for n, (m, s) in enumerate(true()[:: max(1, len(true()) // 24)]):
        tail = tails[n % len(tails)]
        yield m, {**s, "text": s["text"].rstrip(".。") + tail + ("。" if m.lang == "zh" else ".")}


def link() -> Iterator[Made]:
    yield from _appended(
        " https://evil.example/x",
        " at evil.example",
        " (www evil example/x)",
        " [more](http://a)",
        " see http colon",
        " at http://{gpu_1}",
    )


def mention() -> Iterator[Made]:
    yield from _appended(
        " @here", " <!channel>", " <@U0123>", " @everyone", " ＠here", " #general", " cc operator@example"
    )


def markup() -> Iterator[Made]:
    yield from _appended(
        " *now*",
        " `now`",
        " <b>now</b>",
        " _now_",
        " **now**",
        " | now",
        " ~now~",
        " [red]now[/red]",
        "\nnow",
        "\x1b[31mnow",
        " &lt;now",
        " {unknown}",
        " {{gpu_1}}",
    )


def verdict_flip() -> Iterator[Made]:
    bad_en = (
        "The node is healthy.",
        "The GPU can go on being used.",
        "The node is safe to use.",
        "It is ready for new work.",
        "Everything is fine now.",
        "The node is usable.",
    )
    good_en = (
        "Do not use the node.",
        "The GPU is unusable.",
        "The node is broken.",
        "The node cannot be used.",
        "The GPU is dead.",
        "The node is not usable yet.",
    )
    bad_zh = ("节点健康。", "节点可以继续使用。", "GPU 运行正常。", "该节点可用。", "目前没有问题，一切正常。")
    good_zh = ("请勿使用该节点。", "节点不可用。", "GPU 已报废。", "节点暂不可用。", "该 GPU 不健康。")
    for case, lang in cases():
        m = made(case, lang)
        up = m.usable == "yes"
        texts = (good_en if up else bad_en) if lang == "en" else (good_zh if up else bad_zh)
        for i in _roots(m)[:1]:
            for text in texts:
                yield m, _s(text, i.id)


def hedging() -> Iterator[Made]:
    for case, lang in cases():
        m = made(case, lang)
        for i in m.items:
            if i.certainty in ("possible", "probable"):
                for tail in ("", " certainly", " for sure"):
                    yield (
                        m,
                        _s(
                            f"{i.what.rstrip('.。')}{tail if lang == 'en' else ''}{'.' if lang == 'en' else '。'}", i.id
                        ),
                    )
    for m, s in true():
        unsure = [i for i in m.items if i.id in s["cites"] and i.certainty in ("possible", "probable")]
        bare = re.sub(r"\b(may|possibly|probably|might) ", "", s["text"]).replace("可能", "")
        measured = {x.removesuffix(": yes") for i in unsure for x in i.seen}
        if unsure and bare != s["text"] and bare.rstrip(".") not in measured:
            yield m, {**s, "text": bare}
        sure = s["text"].replace("possibly", "certainly").replace(" may ", " certainly does ").replace("可能", "一定")
        if unsure and sure != s["text"]:
            yield m, {**s, "text": sure}
    yield made("power-brake", "en"), _s("The source is a power supply that failed.", "f1")
    yield made("half-width", "en"), _s("The riser of {gpu_1} is damaged.", "f1")


def number_words() -> Iterator[Made]:
    for n, (m, s) in enumerate(true()[::4]):
        text = s["text"].rstrip(".。")
        if m.lang == "zh":
            tail = ("，共三次", "，涉及两块 GPU", "，已有十分之一", "，影响八个节点", "，占一半")[n % 5]
            yield m, {**s, "text": f"{text}{tail}。"}
        else:
            tail = (
                " twice",
                " on two GPUs",
                " for half an hour",
                " a dozen times",
                " three times",
                " on a pair of nodes",
                " zero times",
            )[n % 7]
            yield m, {**s, "text": f"{text}{tail}."}


def unseen_letters() -> Iterator[Made]:
    swaps = (
        ("a", "\u0430"),
        ("e", "\u0435"),
        (" ", "\u00a0"),
        ("o", "\u03bf"),
        (" ", "\u200b "),
        (" ", " \u202e"),
        ("i", "\u0456"),
        (" ", " \u2066"),
        ("t", "t\u0301"),
        (" ", " \U000e0041"),
    )
    for n, (m, s) in enumerate(true()[::3]):
        old, new = swaps[n % len(swaps)]
        bare = re.split(r"(\{[^}]*\})", s["text"])
        at = next((k for k, p in enumerate(bare) if not p.startswith("{") and old in p), None)
        text = (
            "".join(p.replace(old, new, 1) if k == at else p for k, p in enumerate(bare))
            if at is not None
            else s["text"] + "\u200b"
        )
        yield m, {**s, "text": text}


CLASSES: tuple[Callable[[], Iterator[Made]], ...] = (
    wrong_number, wrong_reading, wrong_unit, wrong_code, wrong_gpu, wrong_command, negation, blame, invented_cause, invented_action, other_evidence, link,
    mention, markup, verdict_flip, hedging, number_words, unseen_letters,
)  # fmt: skip


@cache
def lies(made_by: Callable[[], Iterator[Made]]) -> tuple[Made, ...]:
    return tuple(made_by())


@pytest.mark.slow
@pytest.mark.parametrize("made_by", CLASSES, ids=lambda f: f.__name__)
def test_none_passes(made_by: Callable[[], Iterator[Made]]) -> None:
    passed = [(s["text"], s["cites"]) for m, s in lies(made_by) if not isinstance(_told(m, s), Withheld)]
    assert passed == []


def test_there_are_enough_of_each_class() -> None:
    count = {f.__name__: len(lies(f)) for f in CLASSES}
    assert sum(count.values()) >= 4300
    assert min(count.values()) >= 8, count


def test_one_false_sentence_takes_the_true_ones_with_it() -> None:
    m = made("off-the-bus", "en")
    true = _s("Drain and reboot the node.", "f1")
    false = _s("A failing power supply caused it.", "f1")
    assert not isinstance(say(m, true), Withheld)
    assert isinstance(say(m, true, false), Withheld)
    assert isinstance(judge(m, ""), Withheld)
