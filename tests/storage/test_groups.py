from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.storage import values
from torchtriage.domain.group import Group, GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import IncidentFilter
from torchtriage.storage import groups, incidents
from torchtriage.storage.database import Database


def every(database: Database) -> list[Group]:
    with database.reading() as session:
        return list(groups.listed(session, GroupFilter(), 100, None).items)


def test_one_fingerprint_is_one_group_with_the_latest_words(database: Database) -> None:
    with database.transaction() as session:
        values.triaged(session, "a", 10)
        values.triaged(session, "b", 30, values.summary(title="said better"))
        values.triaged(session, "c", 20, values.summary(title="said worse"))
    (group,) = every(database)
    assert (group.count, group.title) == (3, "said better")
    assert group.first_seen == values.START + timedelta(seconds=10)
    assert group.last_seen == values.START + timedelta(seconds=30)
    with database.reading() as session:
        assert groups.read(session, group.id).fingerprints == ("v1:aa",)


def test_a_healthy_run_is_in_no_group(database: Database) -> None:
    with database.transaction() as session:
        incident = values.triaged(session, found=values.summary(None, outcome="healthy"))
        assert incidents.read(session, incident).group is None
    assert every(database) == []


def test_many_incidents_at_once_make_one_group(database: Database) -> None:
    def triage(number: int) -> None:
        with database.transaction() as session:
            values.triaged(session, str(number), number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(triage, range(40)))
    assert [group.count for group in every(database)] == [40]


def test_counts_stay_true_while_incidents_come_and_go(database: Database) -> None:
    dice = random.Random(2)
    plan = [(f"log {i}", f"v1:{dice.randrange(3)}", dice.random() < 0.6) for i in range(60)]

    def come_and_go(step: tuple[str, str, bool]) -> None:
        content, fingerprint, goes = step
        with database.transaction() as session:
            incident = values.triaged(session, content, found=values.summary(fingerprint))
        if goes:
            with database.transaction() as session:
                incidents.remove(session, incident)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(come_and_go, plan))
    with database.reading() as session:
        left = incidents.listed(session, IncidentFilter(), 100, None).items
    told = Counter({group.id: group.count for group in every(database)})
    assert told == Counter(incident.group.id for incident in left if incident.group)


def test_an_empty_group_is_deleted_unless_somebody_changed_it(database: Database) -> None:
    with database.transaction() as session:
        first = values.triaged(session, "a", found=values.summary("v1:aa"))
        second = values.triaged(session, "b", found=values.summary("v1:bb"))
        mark = incidents.read(session, second).group
        assert mark is not None
        groups.change(session, mark.id, GroupChange(GroupStatus.IGNORED), values.START)
        incidents.remove(session, first)
        incidents.remove(session, second)
    assert [(group.id, group.status, group.count) for group in every(database)] == [(mark.id, GroupStatus.IGNORED, 0)]
    with database.transaction() as session:
        again = incidents.read(session, values.triaged(session, "c", found=values.summary("v1:bb"))).group
    assert again is not None
    assert (again.id, again.status, again.count) == (mark.id, GroupStatus.IGNORED, 1)


def test_groups_are_listed_by_pages_and_filters(database: Database) -> None:
    with database.transaction() as session:
        for i in range(5):
            # Two pairs of groups were last seen at the same moment.
            values.triaged(session, str(i), i // 2, values.summary(f"v1:{i}", entry=f"entry.{i % 2}"))
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = groups.listed(session, GroupFilter(), 2, cursor)
            seen += [group.id for group in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert sorted(seen) == sorted({group.id for group in groups.listed(session, GroupFilter(), 9, None).items})
        assert len(groups.listed(session, GroupFilter(entry="entry.1"), 9, None).items) == 2
        groups.change(session, seen[0], GroupChange(GroupStatus.RESOLVED), values.START)
        resolved = groups.listed(session, GroupFilter(status=GroupStatus.RESOLVED), 9, None)
        assert [group.id for group in resolved.items] == seen[:1]
        groups.change(session, seen[1], GroupChange(owner="Ann", note="100 % of them"), values.START)

        def found(words: str, *entries: str) -> list[str]:
            return [
                group.id for group in groups.listed(session, GroupFilter(words=words, entries=entries), 9, None).items
            ]

        assert found("ann") == found("100 % ANN") == [seen[1]]
        assert found("ann nobody") == found("1%m") == []
        assert sorted(found("ann", "entry.0", "entry.1")) == sorted(seen)
        assert len(found("entry.1")) == 2
