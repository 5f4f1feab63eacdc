"""How much a lower power limit costs: the order of it, and how it is measured."""

from __future__ import annotations

from assistant.dialogue._pages import data_of, text_in
from assistant.intent.capped import Capped
from assistant.render.sheet import Code, Heading, Items, Paragraph
from assistant.reply import Reply


def answer(asked: Capped, lang: str) -> Reply:
    """The loss of work bound by computing between two bounds, why other work loses less, and the measurement.

    The power that switching takes goes with f V^2 (frequency in Hz, voltage in V). Where voltage falls with the clock, that is
    the cube of the clock; near the lowest voltage, and with the share that the memory takes, less: the square is taken there.
    So a share p of the power leaves between sqrt(p) and cbrt(p) of the clock.
    """
    share = asked.share
    if share is not None and share >= 1:
        head = text_in(
            lang,
            f"Nothing: {asked.watts:g} W is not below the {asked.most:g} W that {asked.model} is built for.",
            f"没有损失：{asked.watts:g} W 不低于 {asked.model} 的设计功率 {asked.most:g} W。",
        ) if asked.watts and asked.most else text_in(lang, "Nothing: that is the whole power.", "没有损失：那是全部功率。")  # fmt: skip
        return Reply(lang, head, data=data_of("cost", [], loss=[0, 0]))
    bounds = None if share is None else (round(100 * (1 - share ** (1 / 3))), round(100 * (1 - share**0.5)))
    of = f" ({asked.watts:g} of {asked.most:g} W)" if asked.watts and asked.most else ""
    of_zh = f"（{asked.watts:g}/{asked.most:g} W）" if of else ""
    if bounds is None:
        head = text_in(
            lang,
            "Which model it is was not said, so only the rule: at 70 % of its power a GPU keeps 84 to 89 % of its clock, and only work bound by computing loses that much.",
            "未说明型号，只能给出规律：功率为 70 % 时 GPU 保留 84 至 89 % 的时钟，只有计算受限的任务会损失这么多。",
        )
    else:
        low, high = bounds
        head = text_in(
            lang,
            f"About {low} to {high} % in training or prefill that is bound by computing and draws the full power today{of}; little or nothing in decoding and other work that is bound by memory or communication, or draws less than the limit.",
            f"计算受限且目前跑满功率的训练或 prefill 约损失 {low} 至 {high} %{of_zh}；decode 等访存或通信受限、或功耗本就低于该上限的任务几乎没有损失。",
        )
    watts = f"{asked.watts:g}" if asked.watts else "WATTS"
    return Reply(
        lang,
        head,
        (
            Paragraph(text_in(
                lang,
                "An estimate, not a measurement: power goes with the square to the cube of the clock (f V^2). Measure it on your job:",
                "这是估算而非实测：功率约随时钟的二次方至三次方变化（f·V²）。请在自己的作业上实测：",
            )),
            Code((
                "nvidia-smi --query-gpu=power.draw,clocks.sm,clocks_event_reasons.active --format=csv -l 1",
                f"nvidia-smi -pl {watts}",
            )),
            Heading(text_in(lang, "Compare", "对比")),
            Items((
                text_in(lang, "step time or tokens/s over some minutes, before and after; in a job that works in step the slowest GPU sets it", "前后各几分钟的单步时间或 tokens/s；同步作业由最慢的 GPU 决定"),
                text_in(lang, "undo it: nvidia-smi -pl with power.default_limit (needs root; lost at a reboot)", "恢复：用 nvidia-smi -pl 设回 power.default_limit（需 root；重启后失效）"),
            )),
        ),
        settled=False,
        data=data_of("cost", [], watts=asked.watts, most=asked.most, loss=list(bounds) if bounds else None),
    )  # fmt: skip
