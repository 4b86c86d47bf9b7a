"""The tables. Rows of these classes never leave app.storage; migrations/ builds what stands here."""

from app.storage.tables.access import ChangeRow, TokenRow
from app.storage.tables.base import Base, Moment, Number
from app.storage.tables.counts import CountRow, HostCountRow, ViewRow
from app.storage.tables.groups import (
    FingerprintRow,
    GoneGroupRow,
    GroupRow,
    SplitRow,
    SuccessionRow,
    SuggestionRow,
)
from app.storage.tables.incidents import EarlierVerdictRow, FeedbackRow, FileRow, IncidentRow
from app.storage.tables.outgoing import LaneRow, OutboxRow, SlackRequestRow, ThreadRow
from app.storage.tables.retriage import RetriageRow

__all__ = [
    "Base",
    "ChangeRow",
    "CountRow",
    "EarlierVerdictRow",
    "FeedbackRow",
    "FileRow",
    "FingerprintRow",
    "GoneGroupRow",
    "GroupRow",
    "HostCountRow",
    "IncidentRow",
    "LaneRow",
    "Moment",
    "Number",
    "OutboxRow",
    "RetriageRow",
    "SlackRequestRow",
    "SplitRow",
    "SuccessionRow",
    "SuggestionRow",
    "ThreadRow",
    "TokenRow",
    "ViewRow",
]
