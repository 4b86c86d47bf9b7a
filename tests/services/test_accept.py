from __future__ import annotations

import dataclasses
import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, kept, tar, upload
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.errors import LogTooLarge, NotFound, UnreadableLog
from torchtriage.reading.omission_notice import omission_line, omission_reason
from torchtriage.reading.unpack import Upload
from torchtriage.services import incidents, retention
from torchtriage.services.accept import accept
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident


def count(service: Service) -> int:
    return len(incidents.list_incidents(service, IncidentFilter()).items)


def test_an_accepted_log_is_there_byte_for_byte(service: Service) -> None:
    accepted = accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY[:9], OUT_OF_MEMORY[9:])])
    incident = incidents.read_incident(service, accepted.incident_id)
    assert (accepted.new, incident.state, incident.log.bytes) == (True, State.RECEIVED, len(OUT_OF_MEMORY))
    assert b"".join(service.blobs.chunks(incident.log.sha256)) == OUT_OF_MEMORY


def test_files_with_the_same_name_get_different_names(service: Service) -> None:
    uploads = [upload(b"step %d\n" % number, name=name) for number, name in enumerate(["a", "a#2", "a", "a", "b"])]
    files = incidents.read_incident(service, accept(service, Job(), uploads).incident_id).log.files
    assert sorted(file.name for file in files) == ["a", "a#2", "a#3", "a#4", "b"]


def test_a_repeated_log_is_the_same_incident_in_any_packing(service: Service) -> None:
    first = accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY)])
    again = accept(service, Job(job_id="1", attempt=0), [upload(gzip.compress(OUT_OF_MEMORY))])
    other = accept(service, Job(job_id="1", attempt=1), [upload(OUT_OF_MEMORY)])
    assert (again.incident_id, again.new) == (first.incident_id, False)
    assert other.new
    assert len(kept(service)) == 1


def test_several_files_keep_their_names(service: Service) -> None:
    bundle = tar({"rank0.log": HEALTHY, "rank1.log": OUT_OF_MEMORY, "empty.log": b""})
    accepted = accept(service, Job(), [upload(bundle), upload(HEALTHY, name="rank0.log")])
    files = incidents.read_incident(service, accepted.incident_id).log.files
    assert [file.name for file in files] == ["rank0.log", "rank1.log", "empty.log", "rank0.log#2"]
    assert files[0].sha256 == files[3].sha256


@pytest.mark.parametrize(
    ("contents", "error"),
    [
        ([], UnreadableLog),
        ([b""], UnreadableLog),
        ([b"", b""], UnreadableLog),
        ([gzip.compress(b"")], UnreadableLog),
        ([OUT_OF_MEMORY, gzip.compress(OUT_OF_MEMORY)[:100]], UnreadableLog),
        ([OUT_OF_MEMORY, bytes(range(256)) * 9], UnreadableLog),
        ([b"x\n" * 400_000, b"y\n" * 400_000], LogTooLarge),
        ([gzip.compress(b"x\n" * 600_000)], LogTooLarge),
    ],
)
def test_what_is_refused_leaves_nothing(service: Service, contents: list[bytes], error: type[Exception]) -> None:
    with pytest.raises(error):
        accept(service, Job(), [upload(content) for content in contents])
    assert kept(service) == []
    assert count(service) == 0


def test_a_sender_that_goes_away_leaves_nothing(service: Service) -> None:
    class WentAwayError(Exception):
        pass

    def chunks() -> Iterator[bytes]:
        yield OUT_OF_MEMORY
        raise WentAwayError

    with pytest.raises(WentAwayError):
        accept(service, Job(), [Upload("log", chunks())])
    assert kept(service) == []


def test_many_at_once_with_the_same_log(service: Service) -> None:
    together = threading.Barrier(8)

    def send(number: int) -> str:
        together.wait()
        return accept(service, Job(job_id=str(number // 2)), [upload(OUT_OF_MEMORY)]).incident_id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(send, range(8)))) == 4
    assert len(kept(service)) == 1


def test_an_acknowledged_log_is_never_lost_to_a_deletion(service: Service) -> None:
    def send_and_forget(number: int) -> None:
        for turn in range(6):
            accepted = accept(service, Job(job_id=f"{number}-{turn}"), [upload(OUT_OF_MEMORY)])
            incident = incidents.read_incident(service, accepted.incident_id)
            assert b"".join(service.blobs.chunks(incident.log.sha256)) == OUT_OF_MEMORY
            incidents.forget_incident(service, accepted.incident_id, "ann")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(send_and_forget, range(6)))
    assert kept(service) == []


def test_a_deleted_incidents_log_is_deleted_unless_another_incident_has_it(service: Service) -> None:
    one = accept(service, Job(job_id="1"), [upload(OUT_OF_MEMORY)]).incident_id
    two = accept(service, Job(job_id="2"), [upload(OUT_OF_MEMORY)]).incident_id
    incidents.forget_incident(service, one, "ann")
    assert len(kept(service)) == 1
    incidents.forget_incident(service, two, "ann")
    assert kept(service) == []
    with pytest.raises(NotFound):
        incidents.forget_incident(service, two, "ann")


def test_old_incidents_are_deleted_after_the_configured_days(service: Service) -> None:
    for number in range(3):
        accept(service, Job(job_id=str(number)), [upload(OUT_OF_MEMORY)])
    later = datetime.now(UTC) + timedelta(days=7, hours=9)
    assert retention.forget_old(service, later) == 0
    keeping_a_week = dataclasses.replace(service, settings=dataclasses.replace(service.settings, retention_days=7))
    assert retention.forget_old(keeping_a_week, later - timedelta(days=2)) == 0
    assert retention.forget_old(keeping_a_week, later) == 3
    assert kept(service) == []


def test_secrets_in_job_fields_are_not_stored(service: Service) -> None:
    secret = "hf_" + "a" * 34
    job = Job(
        job_id="7",
        job_name=f"train --token {secret}",
        url="https://ann:hunter2hunter2@example.org/7",
        gpus=8,
        labels={"api_key": "a1b2c3d4e5f6", "team": "nlp"},
    )
    accepted = accept(service, job, [upload(OUT_OF_MEMORY, name=f"{secret}.log")])
    incident = incidents.read_incident(service, accepted.incident_id)
    assert incident.job == dataclasses.replace(
        job,
        job_name="train --token [redacted:hugging-face-token]",
        url="https://ann:[redacted:password]@example.org/7",
        labels={"api_key": "[redacted:api-key]", "team": "nlp"},
    )
    assert [file.name for file in incident.log.files] == ["[redacted:hugging-face-token].log"]
    plain = Job(job_id="8", job_name="训练 😀", labels={"team": "nlp"})
    kept_as_is = accept(service, plain, [upload(OUT_OF_MEMORY)])
    assert incidents.read_incident(service, kept_as_is.incident_id).job == plain


def test_an_archive_with_a_binary_is_accepted_and_names_the_omitted_file(service: Service) -> None:
    bundle = tar({"model.bin": bytes(range(256)) * 1000, "rank1.log": OUT_OF_MEMORY})
    incident = accept(service, Job(), [Upload("run.tar", iter([bundle]))]).incident_id
    triage_incident(service, incident)
    verdict = incidents.read_incident(service, incident).verdict
    assert verdict is not None
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "cuda.oom"
    (left,) = [source for source in verdict.run.sources if source.taken_for == "unread"]
    assert (left.file, left.note) == ("model.bin", "binary data, not a log")
    assert any("model.bin: binary data, not a log" in warning for warning in verdict.warnings)


def test_an_archive_of_binaries_alone_is_refused(service: Service) -> None:
    bundle = tar({"a.bin": bytes(range(256)) * 100, "b.bin": bytes(range(256)) * 100})
    with pytest.raises(UnreadableLog, match=r"a\.bin: binary data, not a log"):
        accept(service, Job(), [Upload("run.tar", iter([bundle]))])


def test_the_line_for_an_omitted_file_is_read_back() -> None:
    assert omission_reason(omission_line("too large")) == "too large"
    for other in (
        b"",
        b'{"left_out": 1}',
        b'{"left_out": "cut',
        b'{"other": "x"}',
        b'{"left_out": "' + b"x" * 600 + b'"}',
    ):
        assert omission_reason(other) is None
