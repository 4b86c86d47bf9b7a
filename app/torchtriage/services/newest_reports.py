"""The kinds of senders that sent incidents recently: schedulers, and values of the label `source`."""

from __future__ import annotations

from torchtriage.domain.newest_report import Report
from torchtriage.services.service import Service
from torchtriage.storage import newest_reports

LOOKED_AT = 2000  # incidents


def by_sender(service: Service) -> dict[str, Report]:
    """Returns the newest report of each sender among the latest LOOKED_AT incidents."""
    with service.database.reading() as session:
        return newest_reports.by_sender(session, LOOKED_AT)
