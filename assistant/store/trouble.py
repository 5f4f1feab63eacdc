"""Why the history cannot be used, in one line: every way in which a file, a disk or a server says no."""

from __future__ import annotations

import sqlite3

from knowledge.language import Text

CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SAID: dict[int, Text] = {
    sqlite3.SQLITE_BUSY: Text("another process keeps it locked", "另一个进程一直锁定着它"),
    sqlite3.SQLITE_LOCKED: Text("another process keeps it locked", "另一个进程一直锁定着它"),
    sqlite3.SQLITE_FULL: Text("no space is left on its disk", "所在磁盘空间已满"),
    sqlite3.SQLITE_READONLY: Text("it cannot be written (read-only file, folder or disk)", "无法写入（文件、目录或磁盘只读）"),
    sqlite3.SQLITE_PERM: Text("permission denied", "权限不足"),
    sqlite3.SQLITE_CANTOPEN: Text("it cannot be opened (permission or missing folder)", "无法打开（权限不足或目录不存在）"),
    sqlite3.SQLITE_IOERR: Text("its disk answers with an I/O error", "所在磁盘返回 I/O 错误"),
    sqlite3.SQLITE_CORRUPT: Text("the file is damaged", "文件已损坏"),
    sqlite3.SQLITE_NOTADB: Text("the file is no database", "该文件不是数据库"),
}  # fmt: skip
# PostgreSQL's SQLSTATE (its manual, appendix A): lock_not_available, query_canceled
_SERVER_SAID = {
    "55P03": Text("another session keeps it locked", "另一个会话一直锁定着它"),
    "57014": Text("the server ended the statement at its time limit", "语句超时，已被服务器终止"),
}


def primary(error: BaseException) -> int | None:
    """SQLite's primary result code of an error, whether it comes bare or wrapped by SQLAlchemy."""
    inner = getattr(error, "orig", None) or error
    code = getattr(inner, "sqlite_errorcode", None)
    if code is None and isinstance(inner, sqlite3.DatabaseError) and "malformed" in str(inner):
        return sqlite3.SQLITE_CORRUPT
    return code & 0xFF if isinstance(code, int) else None


def reason(error: BaseException) -> Text:
    """What `error` means, without folders, statements or passwords."""
    code = primary(error)
    if code in _SAID:
        return _SAID[code]
    if isinstance(error, OSError) and error.strerror:
        return Text(error.strerror)
    inner = getattr(error, "orig", None) or error
    state = getattr(inner, "sqlstate", None)
    if state in _SERVER_SAID:
        return _SERVER_SAID[state]
    words = " ".join(str(inner).split()) or type(inner).__name__
    return Text(words[:200])


def not_kept(shown: str, why: Text) -> Text:
    """The line for a check that was not remembered."""
    return Text(
        f"this check is not in the history ({shown}): {why.en}", f"本次检查未写入历史（{shown}）：{why.in_('zh')}"
    )


def not_read(shown: str, why: Text) -> Text:
    """The line for a history that cannot be read."""
    return Text(f"the history ({shown}) cannot be read: {why.en}", f"无法读取历史（{shown}）：{why.in_('zh')}")
