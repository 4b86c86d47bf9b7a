from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from tests.storage import values
from tests.storage.statements import counted_statements
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import IncidentFilter
from torchtriage.errors import NotFound
from torchtriage.storage import audit_log, group_merging, groups, incidents, retriage_reads, verdicts
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.database import Database
from torchtriage.storage.group_merging import CannotRegroup


def seen(session: Session, name: str, at: int = 0) -> str:
    """Returns the group of a new incident, of the fingerprint of this name."""
    incident = values.triaged(session, f"{name} {at}", at, values.summary(f"v1:{name}"))
    group = incidents.read(session, incident).group
    assert group is not None
    return group.id


def counts(database: Database) -> dict[str, int]:
    with database.reading() as session:
        told = {group.id: group.count for group in groups.listed(session, GroupFilter(), 100, None).items}
        for group, count in told.items():
            members = incidents.listed(session, IncidentFilter(group=group), 100, None).items
            assert len(members) == count
    return told


def test_a_merge_applies_to_later_incidents_and_can_be_undone(database: Database) -> None:
    with database.transaction() as session:
        a, b = seen(session, "a", 1), seen(session, "b", 5)
        group_merging.merge(session, a, [b])
    with database.transaction() as session:
        assert seen(session, "b", 9) == a
        told = groups.read(session, a)
        assert (told.count, told.merged, told.last_seen) == (3, (b,), values.START + timedelta(seconds=9))
        assert groups.read(session, b).merged_into == a
    assert counts(database) == {a: 3}
    with database.transaction() as session:
        group_merging.unmerge(session, a, [b])
    assert counts(database) == {a: 1, b: 2}
    with database.transaction() as session:
        assert seen(session, "b", 10) == b


def test_nested_merges_are_undone_one_by_one(database: Database) -> None:
    with database.transaction() as session:
        a, b, c = (seen(session, name) for name in "abc")
        group_merging.merge(session, b, [c])
        group_merging.merge(session, a, [b])
        assert seen(session, "c", 5) == a
    assert counts(database) == {a: 4}
    with database.transaction() as session:
        group_merging.unmerge(session, a, [b])
    assert counts(database) == {a: 1, b: 3}
    with database.transaction() as session:
        group_merging.unmerge(session, b, [c])
    assert counts(database) == {a: 1, b: 1, c: 2}


def test_a_split_applies_to_later_incidents_and_can_be_undone(database: Database) -> None:
    def come(at: int, host: str) -> str:
        with database.transaction() as session:
            incident = values.triaged(session, str(at), at, values.summary(host=host))
            group = incidents.read(session, incident).group
        assert group is not None
        return group.id

    a = come(1, "gpu-1")
    come(2, "gpu-2")
    for field, value in (("host", "gpu-3"), ("user", "ann")):
        with pytest.raises(CannotRegroup, match="no incident"), database.transaction() as session:
            group_merging.split(session, a, field, value)
    with database.transaction() as session:
        b = str(group_merging.split(session, a, "host", "gpu-2"))
    assert counts(database) == {a: 1, b: 1}
    assert (come(3, "gpu-1"), come(4, "gpu-2")) == (a, b)
    with pytest.raises(CannotRegroup, match="all incidents"), database.transaction() as session:
        group_merging.split(session, b, "host", "gpu-2")
    with database.transaction() as session:
        group_merging.merge(session, a, [b])
    assert come(5, "gpu-2") == a
    assert counts(database) == {a: 5}


def test_an_impossible_merge_or_split_changes_nothing(database: Database) -> None:
    with database.transaction() as session:
        a, b = seen(session, "a"), seen(session, "b")
    for wrong in ([a], [b, b]):
        with pytest.raises(CannotRegroup), database.transaction() as session:
            group_merging.merge(session, a, wrong)
    with pytest.raises(NotFound), database.transaction() as session:
        group_merging.merge(session, a, ["999"])
    with pytest.raises(CannotRegroup), database.transaction() as session:
        group_merging.unmerge(session, a, [b])
    with database.transaction() as session:
        group_merging.merge(session, a, [b])
    with pytest.raises(CannotRegroup, match=f"group {b} is merged into group {a}"), database.transaction() as session:
        group_merging.merge(session, b, [a])
    assert counts(database) == {a: 2}


@pytest.mark.slow
def test_merging_while_incidents_come_loses_none(database: Database) -> None:
    with database.transaction() as session:
        a, b = seen(session, "a"), seen(session, "b")

    def work(number: int) -> None:
        with database.transaction() as session:
            if number % 10 == 5:
                group_merging.merge(session, a, [b])
            elif number % 10 == 8:
                group_merging.unmerge(session, a, [b])
            else:
                seen(session, "ab"[number % 2], number + 1)

    def tried(number: int) -> bool:
        try:
            work(number)
        except CannotRegroup:
            return False
        return number % 10 not in (5, 8)

    with ThreadPoolExecutor(6) as pool:
        new = sum(pool.map(tried, range(60)))
    assert sum(counts(database).values()) == 2 + new


def test_a_resolved_group_reopens_when_a_new_incident_joins(database: Database) -> None:
    with database.transaction() as session:
        group = seen(session, "a", 10)
        groups.change(session, group, GroupChange(GroupStatus.RESOLVED), values.START + timedelta(seconds=20))
        seen(session, "a", 15)  # was on its way when it was decided
        assert groups.read(session, group).status is GroupStatus.RESOLVED
        seen(session, "a", 30)
        told = groups.read(session, group)
    assert (told.status, told.regressed_at) == (GroupStatus.OPEN, values.START + timedelta(seconds=30))


def test_an_ignored_group_stays_ignored(database: Database) -> None:
    with database.transaction() as session:
        group = seen(session, "a", 10)
        groups.change(session, group, GroupChange(GroupStatus.IGNORED, "ann", "known"), values.START)
        seen(session, "a", 30)
        told = groups.read(session, group)
    assert (told.status, told.owner, told.note, told.regressed_at) == (GroupStatus.IGNORED, "ann", "known", None)


def test_cost_adds_up(database: Database) -> None:
    with database.transaction() as session:
        for number, hours in enumerate((1.5, None, 2.0)):
            values.triaged(session, str(number), number, values.summary(gpu_hours=hours))
        kept, gone = (incident.id for incident in incidents.listed(session, IncidentFilter(), 2, None).items)
        (group,) = groups.listed(session, GroupFilter(), 10, None).items
        assert group.gpu_hours_lost == 3.5
        incidents.remove(session, gone)
        incidents.remove(session, kept)
        assert groups.read(session, group.id).gpu_hours_lost == 1.5


def test_a_new_verdict_moves_the_incident_and_keeps_the_old_one(database: Database) -> None:
    with database.transaction() as session:
        first = values.triaged(session, "x", 1, values.summary("v1:aa"))
        second = values.triaged(session, "y", 2, values.summary("v1:aa"))
        new = values.verdict(knowledge="sha256:new")
        knowledge = verdicts.knowledge_version(new.engine, new.knowledge)

        def others() -> list[str]:
            return [known.id for known in retriage_reads.of_other_knowledge(session, knowledge, 0, 10)]

        assert others() == [first, second]
        assert verdicts.replace(session, second, new, values.summary("v1:bb", entry="nccl.timeout"), values.START)
        assert others() == [first]
        incident = incidents.read(session, second)
        assert incident.verdict == new
        assert verdicts.earlier(session, second) == [values.verdict()]
        assert incident.group is not None
        assert groups.read(session, incident.group.id).entry == "nccl.timeout"
    assert sorted(counts(database).values()) == [1, 1]


def test_an_empty_group_is_deleted(database: Database) -> None:
    with database.transaction() as session:
        incident = values.triaged(session, "x", 1, values.summary("v1:aa"))
        healthy = values.summary(None, outcome="healthy", entry=None)
        assert verdicts.replace(session, incident, values.verdict("healthy"), healthy, values.START)
        assert incidents.read(session, incident).group is None
    assert counts(database) == {}


def test_a_new_verdict_within_a_merge_changes_no_count(database: Database) -> None:
    with database.transaction() as session:
        a, b = seen(session, "a", 1), seen(session, "b", 5)
        group_merging.merge(session, a, [b])
        incident = values.triaged(session, "another", 7, values.summary("v1:a"))
        assert verdicts.replace(session, incident, values.verdict(), values.summary("v1:b"), values.START)
    assert counts(database) == {a: 3}


@pytest.mark.slow
def test_people_regroup_while_verdicts_change_and_incidents_go(database: Database) -> None:
    """On Postgres each of these holds rows that another wants: whoever holds them in another order waits for ever."""
    names = "abcdef"
    with database.transaction() as session:
        all_of_them = [seen(session, name) for name in names]
        group = all_of_them[0]
        group_merging.merge(session, group, all_of_them[1:])
        known = [values.triaged(session, f"log {i}", i, values.summary(f"v1:{names[i % 6]}")) for i in range(48)]

    def act(number: int) -> None:
        with database.transaction() as session:
            if number % 8 == 7:
                incidents.remove(session, known[number])
            elif number % 8 == 3:
                other = [other for other in all_of_them[1:] if other in groups.read(session, group).merged][number % 5]
                group_merging.unmerge(session, group, [other])
                group_merging.merge(session, group, [other])
            else:
                other_cause = values.summary(
                    f"v1:{names[(number * 5 + 1) % 6]}" if number % 2 else f"v1:new {number % 3}"
                )
                assert verdicts.replace(session, known[number], values.verdict(), other_cause, values.START)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, range(len(known))))
    assert sum(counts(database).values()) == len(names) + len(known) - 6


def test_verdicts_stored_together_are_grouped_as_if_stored_one_by_one(database: Database) -> None:
    """New groups, known ones, one that is resolved and one that is merged; all twice, together and one by one."""

    def kept(suffix: str, together: bool) -> list[dict[str, Any]]:
        with database.transaction() as session:
            known, other, resolved = (seen(session, f"{name}{suffix}") for name in ("known", "other", "resolved"))
            group_merging.merge(session, known, [other])
            change = GroupChange(status=GroupStatus.RESOLVED)
            groups.change(session, resolved, change, values.START + timedelta(seconds=10))
        names = ("new", "known", "resolved", "new", "other", "resolved", "known", None, "new", "resolved", "resolved")
        with database.transaction() as session:
            found = []
            for at, name in enumerate(names, 5):
                told = values.summary(name and f"v1:{name}{suffix}", title=f"{name} at {at}", gpu_hours=at % 3 or None)
                incident = values.added(session, f"{name} {at} {suffix}", at, cluster=suffix)
                found.append(verdicts.NewVerdict(incident, values.verdict(), told))
            for some in [found] if together else [[one] for one in found]:
                assert all(verdicts.save(session, some, values.START))
            groups_of = [incidents.read(session, one.incident_id).group for one in found]
            numbers = [group.id for group in groups_of if group]
            order = list(dict.fromkeys(numbers))
            regressed = [
                change.action for change in audit_log.listed(session, ChangeFilter(f"group {resolved}"), 10, None).items
            ]
            by_number = [groups.read(session, number) for number in order]
            return [{"which": [order.index(number) for number in numbers], "regressed": regressed}] + [
                {
                    "count": group.count,
                    "title": group.title,
                    "status": group.status,
                    "first": group.first_seen,
                    "last": group.last_seen,
                    "regressed": group.regressed_at,
                    "hours": group.gpu_hours_lost,
                }
                for group in by_number
            ]

    assert kept("a", together=True) == kept("b", together=False)


@pytest.mark.parametrize("count", [1, 12])
def test_a_group_that_many_incidents_join_is_written_once(database: Database, count: int) -> None:
    with database.transaction() as session:
        group = seen(session, "known")
        found = [
            verdicts.NewVerdict(values.added(session, str(at), at), values.verdict(), values.summary("v1:known"))
            for at in range(count)
        ]
    with database.transaction() as session, counted_statements(database) as statements:
        assert all(verdicts.save(session, found, values.START))
        assert groups.read(session, group).count == count + 1
    assert sum(statements[begin] for begin in statements if begin.startswith("UPDATE groups")) == 1


def test_each_waiting_incident_gets_one_of_the_verdicts_stored_together(database: Database) -> None:
    with database.transaction() as session:
        waiting, ended = values.added(session, "waits"), values.triaged(session, "ended")
        told = [
            verdicts.NewVerdict(incident, values.verdict(), values.summary())
            for incident in (waiting, ended, "999", waiting)
        ]
        assert verdicts.save(session, told, values.START) == [True, False, False, False]
        group = incidents.read(session, waiting).group
        assert group is not None
        assert group.count == 2
