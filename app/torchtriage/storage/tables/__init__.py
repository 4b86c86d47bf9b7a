"""The tables. Rows of these classes never leave torchtriage.storage; migrations/ creates the tables."""

from torchtriage.storage.tables.access import ChangeRow, TokenRow
from torchtriage.storage.tables.base import Base, Moment, Number
from torchtriage.storage.tables.counts import CountRow, HostCountRow, ViewRow
from torchtriage.storage.tables.decisions import DecisionRow
from torchtriage.storage.tables.drafts import BackTestRow, DraftRow
from torchtriage.storage.tables.gathered_logs import GatheredJobRow, GatheredPieceRow
from torchtriage.storage.tables.groups import (
    FingerprintRow,
    GoneGroupRow,
    GroupRow,
    SplitRow,
    SuccessionRow,
)
from torchtriage.storage.tables.incidents import EarlierVerdictRow, ExplanationRow, FeedbackRow, FileRow, IncidentRow
from torchtriage.storage.tables.outbox import LaneRow, OutboxRow, SlackRequestRow, ThreadRow
from torchtriage.storage.tables.retriage import RetriageRow
from torchtriage.storage.tables.run_summaries import RunSummaryRow

__all__ = [
    "BackTestRow",
    "Base",
    "ChangeRow",
    "CountRow",
    "DecisionRow",
    "DraftRow",
    "EarlierVerdictRow",
    "ExplanationRow",
    "FeedbackRow",
    "FileRow",
    "FingerprintRow",
    "GatheredJobRow",
    "GatheredPieceRow",
    "GoneGroupRow",
    "GroupRow",
    "HostCountRow",
    "IncidentRow",
    "LaneRow",
    "Moment",
    "Number",
    "OutboxRow",
    "RetriageRow",
    "RunSummaryRow",
    "SlackRequestRow",
    "SplitRow",
    "SuccessionRow",
    "ThreadRow",
    "TokenRow",
    "ViewRow",
]
