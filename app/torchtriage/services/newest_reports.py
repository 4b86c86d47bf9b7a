"""Which kinds of senders reported of late: schedulers, and what a label `source` names."""

from __future__ import annotations

from torchtriage.domain.newest_report import Report
from torchtriage.services.service import Service
from torchtriage.storage import newest_reports

LOOKED_AT = 2000  # incidents


def by_sender(service: Service) -> dict[str, Report]:
    """-> the newest report of each, among the latest LOOKED_AT."""
    with service.database.reading() as session:
        return newest_reports.by_sender(session, LOOKED_AT)
