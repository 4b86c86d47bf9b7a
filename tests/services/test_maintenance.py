from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import text

from tests.command_process import until
from tests.services.logs import OUT_OF_MEMORY, upload
from torchtriage.domain.incident import Job, State
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.maintenance import Maintenance
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import triage_claims


def test_the_planner_statistics_are_refreshed(service: Service) -> None:
    triage_incident(service, accept(service, Job(), [upload(OUT_OF_MEMORY)]).incident_id)
    known = (
        "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'incidents'"
        if service.database.is_sqlite
        else "SELECT count(*) FROM pg_stats WHERE tablename = 'incidents'"
    )
    Maintenance(service).run_round()
    with service.database.reading() as session:
        assert session.execute(text(known)).scalar_one() > 5


def test_an_incident_in_triaging_without_a_process_is_triaged(tmp_path: Path) -> None:
    """As where the database was away when its verdict was to be kept."""
    settings = Settings(data_dir=tmp_path, workers=0)
    lost = open_service(settings, lambda *_: None, working=False)
    arrived = accept(lost, Job(), [upload(OUT_OF_MEMORY)]).incident_id
    with lost.database.transaction() as session:
        triage_claims.claim(session, [arrived], datetime.now(UTC))
    close_service(lost)
    service = open_service(settings, triage_incident, working=False)
    upkeep = Maintenance(service)
    upkeep.start()
    until(lambda: read_incident(service, arrived).state is State.TRIAGED)
    assert service.heartbeats.ages().keys() == {"upkeep"}
    assert service.heartbeats.missing() == {}
    upkeep.stop()
    close_service(service)
