from __future__ import annotations

import random
from datetime import timedelta

import pytest

from tests.storage import values
from torchtriage.domain.incident import Feedback, Incident, IncidentFilter, State, VerdictSummary
from torchtriage.storage import feedback, full_text_search, incident_list, incidents
from torchtriage.storage.database import Database
from torchtriage.storage.new_incidents import job_text
from torchtriage.storage.pagination import BadCursor, Page


def ids(page: Page[Incident]) -> list[str]:
    return [item.id for item in page.items]


def test_the_latest_received_come_first_whatever_their_number(database: Database) -> None:
    with database.transaction() as session:
        made = {at: values.added(session, str(at), at) for at in (50, 10, 30, 20, 40)}
        page = incidents.listed(session, IncidentFilter(), 9, None)
    assert ids(page) == [made[at] for at in (50, 40, 30, 20, 10)]
    assert (page.next, page.previous) == (None, None)


def test_pages_lead_forward_and_back(database: Database) -> None:
    with database.transaction() as session:
        # Some were received at the same moment.
        for i in range(11):
            values.triaged(session, str(i), i // 3)
        whole = ids(incidents.listed(session, IncidentFilter(), 99, None))
        forth, cursor = [], None
        while True:
            page = incidents.listed(session, IncidentFilter(), 3, cursor)
            forth.append(page)
            if page.next is None:
                break
            cursor = page.next
        assert [one for page in forth for one in ids(page)] == whole
        assert forth[0].previous is None
        back = forth[-1]
        for expected in reversed(forth[:-1]):
            back = incidents.listed(session, IncidentFilter(), 3, back.previous)
            assert ids(back) == ids(expected)
        assert back.previous is None


@pytest.mark.parametrize("cursor", ["", "nonsense", "MC4x", "MS4xLjE", "LTEuMS4x", "Mi45OTk5OTk5OTk5OTk5OTk5LjE"])
def test_made_up_cursors_are_refused_or_harmless(database: Database, cursor: str) -> None:
    with database.reading() as session:
        try:
            page = incidents.listed(session, IncidentFilter(), 3, cursor)
        except BadCursor:
            return
    assert page.items == ()


def test_pages_stay_right_while_others_are_received(database: Database) -> None:
    with database.transaction() as session:
        for i in range(12):
            values.triaged(session, str(i), i // 2)
        known = ids(incidents.listed(session, IncidentFilter(), 99, None))
    forth, cursor = [], None
    for more in range(100):
        with database.reading() as session:
            page = incidents.listed(session, IncidentFilter(), 3, cursor)
        forth.append(page)
        with database.transaction() as session:  # newer ones, and one at the same moment as the newest
            values.triaged(session, f"new {more}", 5 + more)
        if page.next is None:
            break
        cursor = page.next
    assert [one for page in forth for one in ids(page)] == known
    # Back again: the same ones, and then those that came meanwhile.
    back: list[str] = []
    page = forth[-1]
    while page.previous is not None:
        with database.reading() as session:
            page = incidents.listed(session, IncidentFilter(), 3, page.previous)
        back = ids(page) + back
    with database.reading() as session:
        whole = ids(incidents.listed(session, IncidentFilter(), 99, None))
    assert back + ids(forth[-1]) == whole
    assert len(whole) == len(known) + len(forth)


QUESTIONS = [
    IncidentFilter(q="memory", cluster="green"), IncidentFilter(q="显存 ann"), IncidentFilter(q="nothing"),
    IncidentFilter(entry="xid.79"), IncidentFilter(entry="xid.79", outcome="explained", user="ann"),
    IncidentFilter(entry="xid.79", outcome="unexplained"), IncidentFilter(outcome="explained", cluster="red"),
    IncidentFilter(state=State.TRIAGED, host="gpu-2", cluster="blue"), IncidentFilter(cluster="blue", q="bob"),
    IncidentFilter(group="1", user="bob", until=values.START + timedelta(days=40)),
    IncidentFilter(entry="cuda.oom", since=values.START + timedelta(days=33), q="memory"),
]  # fmt: skip


def fits(wanted: IncidentFilter, one: Incident, summary: VerdictSummary) -> bool:
    words = full_text_search.words(f"{job_text(one.job)}\n{summary.text}")
    return (
        all(any(word.startswith(asked) for word in words) for asked in full_text_search.asked(wanted.q or ""))
        and all(getattr(wanted, name) in (None, getattr(one.job, name)) for name in ("user", "cluster"))
        and all(getattr(wanted, name) in (None, getattr(summary, name)) for name in ("entry", "outcome", "host"))
        and wanted.state in (None, one.state)
        and (wanted.group is None or (one.group is not None and one.group.id == wanted.group))
        and (wanted.since is None or one.received_at >= wanted.since)
        and (wanted.until is None or one.received_at < wanted.until)
    )


@pytest.mark.parametrize(
    "looked_at",
    [
        pytest.param((3, 7, 2), marks=pytest.mark.slow),
        pytest.param((2, 2, 0), marks=pytest.mark.slow),
        (2000, 20_000, 5000),
    ],
)
def test_the_result_is_the_same_whichever_filter_leads(
    database: Database, looked_at: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question, page by page in both directions, against all incidents asked one by one."""
    dice = random.Random(5)
    summaries: dict[str, VerdictSummary] = {}
    with database.transaction() as session:
        for i in range(60):
            entry = dice.choice(["cuda.oom", "cuda.oom", "xid.79", None])
            text = dice.choice(["CUDA out of memory", "GPU 显存不足", "stuck"])
            found = values.summary(
                f"v1:{entry}", entry=entry, outcome="explained" if entry else "unexplained", text=text,
                host=dice.choice(["gpu-1", "gpu-2"]),
            )  # fmt: skip
            incident = values.added(
                session, str(i), i * 86_400, user=dice.choice(["ann", "bob"]), cluster=dice.choice(["blue", "green"])
            )
            summaries[incident] = found
            assert values.save(session, incident, values.verdict(found.outcome), found)
        every = incidents.listed(session, IncidentFilter(), 99, None).items
    for name, most in zip(("AT_FIRST", "LOOKED_AT", "FEW"), looked_at, strict=True):
        monkeypatch.setattr(incident_list, name, most)
    with database.reading() as session:
        for wanted in QUESTIONS:
            expected = [one.id for one in every if fits(wanted, one, summaries[one.id])]
            forth, pages = [], [incidents.listed(session, wanted, 4, None)]
            while pages[-1].next is not None:
                pages.append(incidents.listed(session, wanted, 4, pages[-1].next))
            for page in pages:
                forth += ids(page)
            assert forth == expected, wanted
            back, page = ids(pages[-1]), pages[-1]
            while page.previous is not None:
                page = incidents.listed(session, wanted, 4, page.previous)
                back = ids(page) + back
            assert back == expected, wanted


def test_frequent_and_rare_words_find_the_same(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with database.transaction() as session:
        for i in range(12):
            values.triaged(session, str(i), i, user="ann" if i % 4 else "bob", cluster="blue" if i % 2 else "green")
        asked = [
            IncidentFilter(q="bob"),
            IncidentFilter(q="显存 ann"),
            IncidentFilter(q="memory", cluster="blue"),
            IncidentFilter(q="nothing"),
        ]
        few = [ids(incidents.listed(session, wanted, 99, None)) for wanted in asked]
        monkeypatch.setattr(incident_list, "AT_FIRST", 2)
        monkeypatch.setattr(incident_list, "FEW", 2)
        assert [ids(incidents.listed(session, wanted, 99, None)) for wanted in asked] == few
    assert [len(found) for found in few] == [3, 9, 6, 0]


def test_filters_without_an_index_are_checked_for_each_incident(database: Database) -> None:
    ours = frozenset({"xid.79"})
    with database.transaction() as session:
        gpu = values.summary("v1:a", entry="xid.79", host="gpu-7")
        unknown = values.summary("v1:b", entry=None, outcome="unexplained")
        well = values.summary(None, entry=None, outcome="healthy", host=None)
        made = [
            values.triaged(session, "0", 0, queue="gpu", image="night:7", labels={"team": "nlp", 'a"b': "x"}),
            values.triaged(session, "1", 1, gpu, queue="cpu", labels={"team": "vision"}),
            values.triaged(session, "2", 2, unknown, queue="gpu"),
            values.triaged(session, "3", 3, well),
        ]
        feedback.add(session, made[1], Feedback("right", "ann", values.START))

        def found(**asked: object) -> list[int]:
            page = incidents.listed(session, IncidentFilter(**asked), 9, None)  # type: ignore[arg-type]
            return [made.index(item.id) for item in page.items]

        assert found(queue="gpu") == [2, 0]
        assert found(queue="gpu", image="night:7") == [0]
        assert found(label="team:vision") == [1]
        assert found(label="team") == found(label='a"b:x') == found(label="team:n\\lp") == []
        assert found(retry="none") == [3, 2, 1, 0]
        assert found(retry="retry") == []
        assert found(failed=True) == [2, 1, 0]
        assert found(owner="hardware", entries=ours) == [1]
        assert found(owner="platform", entries=frozenset()) == []
        assert found(owner="unknown") == found(area="unknown") == [2]
        assert found(area="cuda") == [0]
        assert found(area="cuda,xid", failed=True) == [1, 0]
        assert found(area="cud%") == []
        assert found(feedback="right") == [1]
        assert found(feedback="right", queue="gpu") == []


def test_filters_without_an_index_apply_to_pages_too(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incident_list, "AT_FIRST", 2)
    monkeypatch.setattr(incident_list, "LOOKED_AT", 3)
    with database.transaction() as session:
        made = [values.triaged(session, str(at), at, queue="gpu" if at % 4 == 0 else "cpu") for at in range(12)]
        found, cursor = [], None
        while True:
            page = incidents.listed(session, IncidentFilter(queue="gpu", q="memory"), 2, cursor)
            found += ids(page)
            if (cursor := page.next) is None:
                break
    assert found == [made[at] for at in (8, 4, 0)]
