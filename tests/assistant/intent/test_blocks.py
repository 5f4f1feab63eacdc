"""The row remapping block of nvidia-smi, typed on one line."""

from __future__ import annotations

from assistant.intent.blocks import spread
from assistant.intent.parse import understand
from tests.cases import each

PARTS = ("correctable", "uncorrectable", "pending", "failure")


@each(
    ("said", "values"),
    [
        ("remapped rows: 2 correctable 1 uncorrectable, pending: no, failure: no", (2, 1, False, False)),
        (
            "row remapper: correctable error 0, uncorrectable error: 3, pending yes, failure occurred no",
            (0, 3, True, False),
        ),
        ("行重映射：可纠正 4，不可纠正 2，pending 是，failure 否", (4, 2, True, False)),
        ("remapped rows: 12 correctable 0 uncorrectable. should i worry", (12, 0, None, None)),
        ("行重映射：可纠正 8 次，不可纠正 0 次，要换吗", (8, 0, None, None)),
        ("row remap 的 correctable 有 5 个，uncorrectable 0，pending no，failure no", (5, 0, False, False)),
    ],
)
def test_each_part_is_of_row_remapping(said: str, values: tuple[object, ...]) -> None:
    query = understand(said)
    told = {o.fact.rpartition(".")[2]: o.value for o in query.observations if o.fact.startswith("gpu.row_remap.")}
    assert tuple(told.get(part) for part in PARTS) == values
    assert not query.unread


@each(
    ("said", "values"),
    [
        ("retired pages: single bit 0, double bit 3, pending no", (0, 3, False)),
        ("V100 退役页 单比特 2 个，双比特 1 个，没有 pending", (2, 1, False)),
        ("page retirement: 4 double bit, 7 single bit, pending yes", (7, 4, True)),
    ],
)
def test_each_part_is_of_retired_pages(said: str, values: tuple[object, ...]) -> None:
    query = understand(said)
    told = {o.fact.rpartition(".")[2]: o.value for o in query.observations if o.fact.startswith("gpu.retired_pages.")}
    assert tuple(told.get(part) for part in ("single_bit", "double_bit", "pending")) == values
    assert not query.unread


@each("said", ["row remap pending, can I go on?", "2 uncorrectable errors", "remapped rows 3 uncorrectable"])
def test_what_is_no_block_stays(said: str) -> None:
    assert spread(said) == said
