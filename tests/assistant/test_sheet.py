"""A table is as wide as there is room, and where its cells would be a word wide it is no table any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.render.cells import width
from assistant.render.sheet import Table, text_part

WIDE = Table(
    ("假设", "支持", "反对", "未知", "下一步"),
    (
        (
            "GPU 掉卡或不再应答",
            "GPU 0000:ba:00.0 在 PCI 总线上有应答：否" * 2,
            "",
            "",
            "排空并重启节点，然后检查供电与插接。",
        ),
    ),
)
CELLS = st.text(st.sampled_from("显存错误 a b c"), max_size=60)


def test_a_crowded_table_is_written_row_by_row() -> None:
    made = text_part(WIDE, 60)
    assert made[0] == "GPU 掉卡或不再应答"
    assert made[1].startswith("  支持  GPU 0000:ba:00.0")
    assert made[-1].startswith("  下一步  ")
    assert "反对" not in "".join(made)


def test_a_table_with_room_stays_one() -> None:
    assert text_part(WIDE, 200)[0].split() == ["假设", "支持", "反对", "未知", "下一步"]


@given(st.lists(st.tuples(*[CELLS] * 5), min_size=1, max_size=4), st.integers(60, 120))
def test_no_line_is_wider_than_there_is_room(rows: list[tuple[str, ...]], columns: int) -> None:
    rows = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    for line in text_part(Table(tuple("abcde"), tuple(rows)), columns):
        assert width(line) <= columns + 2
