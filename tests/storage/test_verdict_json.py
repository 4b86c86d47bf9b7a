"""What any version stored is read back as a Verdict: earlier releases' (tests/releases), those that were written before
stored verdicts had a number (verdicts_without_number.jsonl, one a line), today's and tomorrow's."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text, update

from tests.releases.unpacking import unpack
from tests.storage import values
from torchtriage.domain.incident import IncidentFilter, State
from torchtriage.domain.verdict import Evidence, Reason, Verdict
from torchtriage.errors import DamagedJson
from torchtriage.storage import incidents
from torchtriage.storage.database import Database
from torchtriage.storage.tables import IncidentRow
from torchtriage.storage.verdict_json import FORM, from_stored, to_stored

_UNNUMBERED = Path(__file__).with_name("verdicts_without_number.jsonl")


def unnumbered() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _UNNUMBERED.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module", params=("0.1.0", "0.2.0"))
def of_release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("release")
    url = f"sqlite:///{folder / 'kept.db'}"
    unpack(request.param, folder, url)
    with create_engine(url).connect() as connection:
        return [json.loads(found) for found in connection.execute(text("SELECT verdict FROM incidents")).scalars()]


def without_later_fields(verdict: dict[str, Any], older: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts of a verdict that an older one has; what came since has a default."""
    return {
        name: without_later_fields(verdict[name], value) if isinstance(value, dict) else verdict[name]
        for name, value in older.items()
    }


def test_verdicts_of_the_last_release_are_read_unchanged(of_release: list[dict[str, Any]]) -> None:
    assert len(of_release) > 30
    for stored in of_release:
        written = {name: value for name, value in stored.items() if name != "form"}  # the number of its form
        assert without_later_fields(from_stored(stored).as_dict(), written) == written


def test_verdicts_without_a_form_number_are_read_unchanged() -> None:
    known = unnumbered()
    assert {stored["outcome"] for stored in known} == {"explained", "unexplained", "healthy"}
    for stored in known:
        assert without_later_fields(from_stored(stored).as_dict(), stored) == stored


def test_the_parts_have_their_types() -> None:
    verdict = next(found for found in map(from_stored, unnumbered()) if found.cascades and found.root_cause)
    assert verdict.root_cause is not None
    assert all(isinstance(line, Evidence) for line in verdict.root_cause.evidence)
    assert all(isinstance(reason, Reason) for reason in verdict.root_cause.because)
    assert all(len(mark.ranks) for mark in verdict.timeline)
    assert isinstance(verdict.cascades, tuple)


def test_a_verdict_stored_now_is_read_back_equal() -> None:
    for verdict in [*map(from_stored, unnumbered()), values.verdict()]:
        stored = json.loads(json.dumps(to_stored(verdict)))
        assert stored["form"] == FORM
        assert from_stored(stored) == verdict


def test_the_earliest_verdicts_left_out_what_was_empty() -> None:
    action = {"retry": "no", "advice": "none", "exclude_hosts": [], "reason": "Nothing to do."}
    verdict = from_stored({"source": "run.log", "outcome": "healthy", "action": action})
    assert (verdict.root_cause, verdict.cascades, verdict.run.attempts) == (None, (), 1)


def test_a_newer_verdict_is_read_as_far_as_it_is_known() -> None:
    newer = to_stored(values.verdict()) | {"form": FORM + 1, "told": {"by": "a later release"}}
    newer["run"] |= {"a_later_fact": [3]}
    assert from_stored(newer) == values.verdict()


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        ((), None, "is not an object"),
        ((), "{", "is not an object"),
        (("form",), "two", "form"),
        (("form",), -1, "form"),
        (("action",), None, "action"),
        (("source",), 7, "source: is not a string"),
        (("root_cause", "score"), "high", "root_cause.score: is not a number"),
        (("root_cause", "rank"), True, "root_cause.rank: is not a whole number or null"),
        (("root_cause", "evidence", 0, "line"), "12", "root_cause.evidence.0.line: is not a whole number"),
        (("root_cause", "because"), [["sign"]], "root_cause.because.0"),
        (("root_cause", "captured"), {"rank": 3}, "root_cause.captured.rank"),
        (("timeline",), [{"ranks": "0-x", "kind": "first", "line": 1}], "timeline.0.ranks"),
        (("run", "hosts"), "gpu-1", "run.hosts: is not a list"),
    ],
)
def test_a_damaged_verdict_is_an_error_that_names_the_part(part: tuple[Any, ...], value: Any, problem: str) -> None:
    stored: Any = next(known for known in unnumbered() if known["root_cause"])
    inner = stored
    for step in part[:-1]:
        inner = inner[step]
    if part:
        inner[part[-1]] = value
    else:
        stored = value
    with pytest.raises(DamagedJson, match=problem):
        from_stored(stored)


def test_a_verdict_that_lacks_a_part_is_damaged() -> None:
    stored = to_stored(values.verdict())
    for field in fields(Verdict):
        if field.name not in (
            "timeline",
            "events",
            "facts",
            "answer",
            "provisional",
        ):  # came later, so they have a default
            with pytest.raises(DamagedJson, match=f"has no {field.name}"):
                from_stored({name: value for name, value in stored.items() if name != field.name})


@pytest.mark.parametrize("damage", [{"outcome": 7}, ["no object"]])
def test_a_damaged_verdict_fails_its_incident_and_no_other(database: Database, damage: Any) -> None:
    with database.transaction() as session:
        damaged, whole = values.triaged(session, "one"), values.triaged(session, "two")
        session.execute(update(IncidentRow).where(IncidentRow.number == int(damaged)).values(verdict=damage))
    with database.reading() as session:
        first, second = incidents.listed(session, IncidentFilter(), 10, None).items
    assert (first.id, first.state, first.verdict) == (whole, State.TRIAGED, values.verdict())
    assert (second.id, second.state, second.verdict) == (damaged, State.FAILED, None)
    assert "damaged" in (second.failure or "")
    assert second.log.files  # it can still be read


def test_a_verdict_that_is_no_json_at_all_fails_its_incident(database: Database) -> None:
    broken = '{"outcome": ' if database.is_sqlite else '"Postgres keeps nothing but JSON"'
    with database.transaction() as session:
        damaged = values.triaged(session)
        session.execute(text("UPDATE incidents SET verdict = :broken, job = :broken"), {"broken": broken})
    with database.reading() as session:
        found = incidents.read(session, damaged)
    assert (found.state, found.verdict) == (State.FAILED, None)
