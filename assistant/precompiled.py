"""What a checkout compiles when it first runs, compiled at once: ``python -m assistant.precompiled``, by ``make``.

The files lie in ``knowledge/_compiled``, named by the content they were made from: after a change of that, they are not read, and
the user's cache has what takes their place (`knowledge.compiled`). The wheel carries the same without (`hatch_build.py`).
"""

from __future__ import annotations

import os
from importlib import import_module

from knowledge import compiled, lazy
from knowledge.compared import quantities
from knowledge.whole import replace_file

_PACKAGES = ("assistant", "knowledge", "probes", "rules")


def patterns() -> bytes:
    """The file `lazy.FORMS`, of every module that declares patterns."""
    root = compiled.ROOT.parent
    for path in (path for package in _PACKAGES for path in sorted((root / package).rglob("*.py"))):
        if "from knowledge.lazy import" in path.read_text(encoding="utf-8"):
            import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
    quantities()  # has patterns in its data
    return lazy.compiled()


def main() -> None:
    """Compile. FaultsError with every fault."""
    os.environ["GPUDIAG_CACHE_DIR"] = str(compiled.SHIPPED)
    from assistant import find, formats
    from assistant.find import asked
    from assistant.intent import tables
    from knowledge import runbook
    from rules import loader

    compiled.SHIPPED.mkdir(exist_ok=True)
    for name in compiled.shard_names():
        compiled.shard(name)
    for load in (loader.shipped, formats.index, runbook.all_runbooks, find.known_words, asked.index, tables.tables):
        load()
    replace_file(compiled.SHIPPED / lazy.FORMS, patterns())  # at once: others have it mapped
    for path in compiled.SHIPPED.iterdir():
        path.chmod(0o644)  # a checkout is read by everybody on the machine


if __name__ == "__main__":
    main()
