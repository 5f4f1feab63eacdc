"""Each row of the threat model names the test that holds it, and that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_tests_that_the_page_names() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")][
        2:
    ]
    assert len(rows) > 20
    for row in rows:
        told = row.rsplit("|", 2)[1]
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", told)
        assert named or told.strip() == "none yet", row
        for file, test in named:
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8") if test else (ROOT / file).is_file(), (
                file,
                test,
            )
