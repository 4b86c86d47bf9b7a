from __future__ import annotations

import pytest

from tests.services.logs import upload
from torchtriage.domain.incident import Incident, Job, StoredFile
from torchtriage.services import log_search
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.log_search import Found, LineQuery, find, stream
from torchtriage.services.service import Service
from torchtriage.storage import zstd_frames
from torchtriage.storage.blob_writer import BlobWriter

LINES = [
    *(f"[rank{number % 3}]: step {number}" for number in range(30)),
    "[rank1]: Traceback (most recent call last):",
    "[rank1]: ValueError: Gone",
    *(f"[rank{number % 3}]: waits {number}" for number in range(30, 40)),
]


@pytest.fixture
def kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> tuple[Incident, StoredFile]:
    """A log that lies in many frames."""
    monkeypatch.setattr(zstd_frames, "FRAME", 64)
    taken = accept(service, Job(), [upload(("\n".join(LINES) + "\n").encode())])
    incident = read_incident(service, taken.incident_id)
    return incident, incident.log.files[0]


def line_of(words: str) -> int:
    return next(number for number, line in enumerate(LINES, 1) if words in line)


def test_words_are_found_forward_and_backward(service: Service, kept: tuple[Incident, StoredFile]) -> None:
    wanted, place = LineQuery("STEP 17"), line_of("step 17")
    assert find(service, *kept, wanted, 1).line == place
    assert find(service, *kept, wanted, place).line == place
    assert find(service, *kept, wanted, place, back=True).line == place
    assert find(service, *kept, wanted, len(LINES), back=True).line == place
    after, before = find(service, *kept, wanted, place + 1), find(service, *kept, wanted, place - 1, back=True)
    assert (after.line, after.ended) == (None, True)
    assert (before.line, before.ended) == (None, True)


def test_an_error_and_one_rank_are_found(service: Service, kept: tuple[Incident, StoredFile]) -> None:
    assert find(service, *kept, LineQuery(error=True), 1).line == line_of("Traceback")
    assert find(service, *kept, LineQuery("step", rank=2), 10).line == 12


def test_a_search_ends_in_time_and_says_where_it_stopped(
    service: Service, kept: tuple[Incident, StoredFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_search, "SECONDS", -1.0)
    start, looks = 1, 0
    while not (found := find(service, *kept, LineQuery("nowhere"), start)).ended:
        assert found.line is None
        assert found.looked >= start
        start, looks = found.looked + 1, looks + 1
    assert looks > 3


@pytest.mark.parametrize("back", [False, True])
def test_a_ranks_lines_come_in_parts_and_none_is_lost(
    service: Service, kept: tuple[Incident, StoredFile], monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    told: list[int] = []
    start: int | None = len(LINES) if back else 1
    while start is not None:
        part = stream(service, *kept, 1, start, 4, 10_000, back)
        told += [line.line for line in part.lines]
        start = part.next
    expected = [number for number, line in enumerate(LINES, 1) if line.startswith("[rank1]")]
    assert told == (expected[::-1] if back else expected)


def test_frames_without_matches_are_not_read(
    service: Service, kept: tuple[Incident, StoredFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(reader: zstd_frames.FrameReader, frame: int) -> bytes:
        read.append(frame)
        return get(reader, frame)

    get = zstd_frames.FrameReader.get
    monkeypatch.setattr(zstd_frames.FrameReader, "get", counted)
    assert find(service, *kept, LineQuery(error=True), 1).line == line_of("Traceback")
    assert len(set(read)) <= 2  # the line's own frame, and the one that it can go on in
    find(service, *kept, LineQuery(rank=77), 1)  # reads the first lines, by which labels are known
    read.clear()
    assert find(service, *kept, LineQuery(rank=77), 1) == Found(None, len(LINES), True)
    assert find(service, *kept, LineQuery(rank=77), len(LINES), back=True) == Found(None, 1, True)
    assert read == []


def test_logs_stored_without_features_are_read_completely(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstd_frames, "FRAME", 64)
    monkeypatch.setattr(BlobWriter, "_mark", lambda writer, data: None)
    taken = accept(service, Job(), [upload(("\n".join(LINES) + "\n").encode())])
    incident = read_incident(service, taken.incident_id)
    assert find(service, incident, incident.log.files[0], LineQuery(error=True), 1).line == line_of("Traceback")
    assert stream(service, incident, incident.log.files[0], 2, 1, 3, 1000).next is not None
