from __future__ import annotations

from sqlalchemy import text

from app.domain.incident import Job
from app.services.accept import accept
from app.services.service import Service
from app.services.triage_incident import triage_incident
from app.services.upkeep import Upkeep
from tests.services.logs import OUT_OF_MEMORY, upload


def test_the_database_comes_to_know_how_its_tables_are_filled(service: Service) -> None:
    triage_incident(service, accept(service, Job(), [upload(OUT_OF_MEMORY)]).incident_id)
    known = (
        "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'incidents'"
        if service.database.is_sqlite
        else "SELECT count(*) FROM pg_stats WHERE tablename = 'incidents'"
    )
    Upkeep(service).turn()
    with service.database.reading() as session:
        assert session.execute(text(known)).scalar_one() > 5
