"""The tables. Rows of these classes never leave app.storage; migrations/ builds what stands here."""

from app.storage.tables.access import ChangeRow, TokenRow
from app.storage.tables.base import Base, Moment, Number
from app.storage.tables.groups import FingerprintRow, GroupRow, SplitRow
from app.storage.tables.incidents import EarlierVerdictRow, FeedbackRow, FileRow, IncidentRow

__all__ = [
    "Base",
    "ChangeRow",
    "EarlierVerdictRow",
    "FeedbackRow",
    "FileRow",
    "FingerprintRow",
    "GroupRow",
    "IncidentRow",
    "Moment",
    "Number",
    "SplitRow",
    "TokenRow",
]
