"""The tables. Rows of these classes never leave app.storage; migrations/ builds what stands here."""

from app.storage.tables.access import ChangeRow, TokenRow
from app.storage.tables.base import Base, Moment, Number
from app.storage.tables.counts import DailyCountRow, ViewRow
from app.storage.tables.groups import FingerprintRow, GroupRow, SplitRow, SuggestionRow
from app.storage.tables.incidents import EarlierVerdictRow, FeedbackRow, FileRow, IncidentRow
from app.storage.tables.outgoing import LaneRow, OutboxRow, SlackRequestRow, ThreadRow

__all__ = [
    "Base",
    "ChangeRow",
    "DailyCountRow",
    "EarlierVerdictRow",
    "FeedbackRow",
    "FileRow",
    "FingerprintRow",
    "GroupRow",
    "IncidentRow",
    "LaneRow",
    "Moment",
    "Number",
    "OutboxRow",
    "SlackRequestRow",
    "SplitRow",
    "SuggestionRow",
    "ThreadRow",
    "TokenRow",
    "ViewRow",
]
