"""Build hook: the wheel carries every data file compiled to JSON, so that no YAML is read at start.

The shards are built into a temporary folder and go into the wheel as
``knowledge/_compiled/<shard>.json``. An editable install gets none: a checkout compiles by
content when it runs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledData(BuildHookInterface):  # type: ignore[type-arg]  # generic over the builder's configuration, unused here
    """Compile facts, catalogues, rules, runbooks and the index of formats."""

    PLUGIN_NAME = "custom"
    folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the shards and hand them to the wheel. FaultsError stops the build with every fault."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from assistant import find, formats
            from assistant.intent import tables
            from knowledge import compiled, runbook
            from rules import loader

            self.folder = Path(tempfile.mkdtemp(prefix="gpudiag-"))
            extra = {
                "formats": formats.build(),
                "rules": loader.compile_catalog(),
                "runbooks": runbook.build_all(),
                "topics": find.build(),
                tables.SHARD: tables.build(),
            }
            for path in compiled.write_shipped(self.folder, extra):
                build_data["force_include"][str(path)] = f"knowledge/_compiled/{path.name}"
        finally:
            sys.path.remove(self.root)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the interface's
        """Take the temporary folder away."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
