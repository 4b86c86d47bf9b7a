from __future__ import annotations

import pytest

from app.domain.incident import Incident, IncidentFilter
from app.storage import incidents, listing
from app.storage.cursor import BadCursor, Page
from app.storage.database import Database
from tests.storage import values


def ids(page: Page[Incident]) -> list[str]:
    return [item.id for item in page.items]


def test_the_latest_received_come_first_whatever_their_number(database: Database) -> None:
    with database.transaction() as session:
        made = {at: values.added(session, str(at), at) for at in (50, 10, 30, 20, 40)}
        page = incidents.listed(session, IncidentFilter(), 9, None)
    assert ids(page) == [made[at] for at in (50, 40, 30, 20, 10)]
    assert (page.next, page.previous) == (None, None)


def test_pages_lead_on_and_back_again(database: Database) -> None:
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


def test_words_that_many_have_and_words_that_few_have_find_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        monkeypatch.setattr(listing, "FEW", 2)
        assert [ids(incidents.listed(session, wanted, 99, None)) for wanted in asked] == few
    assert [len(found) for found in few] == [3, 9, 6, 0]
