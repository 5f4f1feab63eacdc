"""The journal: intent before a run, result after it, who asked and who agreed; only ever added to, and chained by hashes.

* `Journal` appends and reads; it lies in the history, SQLite or PostgreSQL.
* `assistant.journal.verify` names the first record that is not as it was written.
"""

from __future__ import annotations

from assistant.journal.chain import Entry, Record
from assistant.journal.journal import Journal

__all__ = ["Entry", "Journal", "Record"]
