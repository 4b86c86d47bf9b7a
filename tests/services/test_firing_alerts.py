"""Alerts in an Alertmanager, from incidents on: they end with their group, and are told again; on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chat.test_alertmanager import fake
from tests.services.logs import OUT_OF_MEMORY, upload
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Job
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.firing_alerts import send_firing_again
from torchtriage.services.groups import change_group, list_groups
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings


def failed(service: Service, job: str) -> None:
    triage_incident(service, accept(service, Job(job_id=job, cluster="blue"), [upload(OUT_OF_MEMORY)]).incident_id)


def sent(service: Service) -> None:
    for count in range(1, 20):
        if not outbox.send_one(service, datetime.now(UTC) + timedelta(seconds=60 * count)):
            return


def test_an_alert_fires_as_long_as_its_group_is_open(tmp_path: Path, database_url: str) -> None:
    with fake() as running:
        settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0, alertmanager_url=running.url, allow_private_calls=True)  # fmt: skip
        service = open_service(settings, lambda *_: None, working=False)
        failed(service, "1")
        sent(service)
        (alert,) = running.firing()
        assert (alert["labels"]["entry"], alert["labels"]["cluster"]) == ("cuda.oom", "blue")
        running.alerts.clear()
        send_firing_again(service)
        assert [one["labels"] for one in running.firing()] == [alert["labels"]]
        (group,) = list_groups(service, GroupFilter()).items
        change_group(service, group.id, GroupChange(GroupStatus.RESOLVED), "ann")
        sent(service)
        assert running.firing() == []
        assert len(running.alerts) == 1
        running.alerts.clear()
        send_firing_again(service)
        assert running.alerts == {}
        failed(service, "2")
        sent(service)
        assert len(running.firing()) == 1
        change_group(service, group.id, GroupChange(mute=timedelta(days=1)), "ann")
        sent(service)
        assert running.firing() == []
        running.alerts.clear()
        send_firing_again(service)
        assert running.alerts == {}
        close_service(service)


def test_an_unreachable_alertmanager_does_not_stop_the_others(tmp_path: Path, database_url: str) -> None:
    with fake() as running:
        settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0, alertmanager_url=running.url, allow_private_calls=True)  # fmt: skip
        service = open_service(settings, lambda *_: None, working=False)
        failed(service, "1")
        sent(service)
    send_firing_again(service)
    close_service(service)
