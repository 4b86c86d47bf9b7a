"""Every error that torchtriage raises on purpose.

TriageError                 status 500, internal_error
├── SettingError            a setting is missing or wrong; stops the start
│   └── MissingExtra        an optional library is not installed; names the extra that installs it
├── KnowledgeError          an entry of the knowledge base is wrong; lists all problems with file:line
├── BadInput                400, the caller sent something wrong
│   ├── UnreadableLog       422, the bytes are not a log: broken archive, binary or empty
│   └── LogTooLarge         413
├── NotFound                404
├── NotTriaged              409, an incident has no verdict, or none yet
├── DamagedLog              500, the stored bytes of a log have changed
├── DamagedJson             500, stored JSON matches no known version of its format
└── StorageUnavailable      503, the request can succeed later
"""

from __future__ import annotations

from typing import Any


class TriageError(Exception):
    """The base class of all these errors. `code` is for programs, the message for people, and `detail` for both."""

    status = 500
    code = "internal_error"

    def __init__(self, message: str, **detail: Any) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, "detail": self.detail}}


class SettingError(TriageError):
    code = "bad_setting"


class MissingExtra(SettingError):
    code = "missing_extra"


class KnowledgeError(TriageError):
    """One or more entries are wrong. `problems` has one sentence per problem, each beginning with file:line."""

    code = "bad_knowledge"

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems), problems=problems)
        self.problems = problems


class BadInput(TriageError):
    status = 400
    code = "bad_input"


class UnreadableLog(BadInput):
    status = 422
    code = "unreadable_log"


class LogTooLarge(BadInput):
    status = 413
    code = "log_too_large"


class NotFound(TriageError):
    status = 404
    code = "not_found"


class NotTriaged(TriageError):
    status = 409
    code = "not_triaged"


class DamagedLog(TriageError):
    """The stored bytes of a log differ from those that were received. Sending the same log again repairs it."""

    code = "damaged_log"


class DamagedJson(TriageError):
    """Stored JSON, such as a verdict, matches no known version of its format. The message names the part."""

    code = "damaged_json"


class StorageUnavailable(TriageError):
    """The database or the disk is not available now. Nothing was stored, and the same request can succeed later."""

    status = 503
    code = "storage_unavailable"
