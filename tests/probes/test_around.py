"""Line numbers are those of ``cat -n``, ``nl`` and ``grep -n``; the index column of a table is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.around import bare

# The first column and the rest of a row, of tables whose first column is an index; and their headings.
TABLES = {
    "dmon": (
        "{:5d}    {} 62 65 100 99",
        ["# gpu    pwr  gtemp  mtemp     sm    mem", "# Idx      W      C      C      %      %"],
    ),
    "amd": ("{:3d}  {} W   62 °C   50 °C  1902 MHz", ["GPU  POWER   GPU_T   MEM_T   GFX_CLK"]),
    "squeue": ("{:18d}      h100 pretrain {}  R", ["             JOBID PARTITION     NAME     USER ST"]),
    "tsv": ("{}\t{}\t62", ["gpu\tpower\ttemp"]),
    "csv": ("{}, {}, 62", ["index, power.draw [W], temperature.gpu"]),
    "pairs": ("{}: {} MiB", ["GPU: memory"]),
}
NUMBERED = {
    "cat -n": lambda text: [f"{i:6}\t{line}" for i, line in enumerate(text, 1)],
    "nl": lambda text: [f"{i:6}  {line}" for i, line in enumerate(text, 1)],
    "grep -n": lambda text: [f"{i}:{line}" for i, line in enumerate(text, 1)],
    "a part of cat -n": lambda text: [f"{i:6}\t{line}" for i, line in enumerate(text, 40)],
}


@st.composite
def tables(draw: st.DrawFn) -> list[str]:
    """A table with a heading, ahead of each sample or once; its first column counts up from anywhere."""
    row, heading = TABLES[draw(st.sampled_from(sorted(TABLES)))]
    first, rows = draw(st.integers(0, 999_000)), draw(st.integers(1, 12))
    again, repeated = draw(st.integers(1, 6)), draw(st.booleans())
    body = [row.format(first + i, 300 + i) for i in range(rows)]
    return [*heading, *body] + [line for _ in range(again - 1) for line in [*(heading if repeated else []), *body]]


@given(tables())
def test_an_index_column_is_no_line_number(table: list[str]) -> None:
    text = "\n".join(table) + "\n"
    assert bare(text).text == text


@given(tables(), st.sampled_from(sorted(NUMBERED)))
def test_line_numbers_leave_the_table_as_it_is(table: list[str], how: str) -> None:
    table = [*table, "", *table]  # of four lines at least, one of them blank
    assert bare("\n".join(NUMBERED[how](table)) + "\n").text == "\n".join(table) + "\n"


@given(st.integers(0, 7), st.integers(1, 8))
def test_rows_without_a_heading_begin_at_zero_or_again(gpus: int, samples: int) -> None:
    text = "".join(f"{i:5d}    {300 + i}     62\n" for _ in range(samples) for i in range(gpus + 1))
    assert bare(text).text == text


def test_an_arrow_between_two_ends_is_no_mark() -> None:
    line = "-E- Link: S1/N1/P19 <--> sw-4/U1/P20 - Unexpected actual link speed 25\n"
    assert bare(line).text == line
