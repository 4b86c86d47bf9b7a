"""What becomes of groups whose logs have other fingerprints now; on both databases."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from tests.storage import values
from torchtriage.domain.group import Group, GroupChange, GroupFilter, GroupMark, GroupStatus
from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.notice import NoticeKind, SendState
from torchtriage.errors import NotFound
from torchtriage.storage import (
    alerts,
    audit_log,
    fingerprint_upgrade,
    group_merging,
    groups,
    incidents,
    outbox,
    verdicts,
)
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.storage.database import Database
from torchtriage.storage.group_merging import CannotRegroup
from torchtriage.storage.outbox import Wanted

TODAY, LATER = "today", "later"
IGNORED = GroupChange(GroupStatus.IGNORED, "ann", "known")
OPEN, RESOLVED = GroupChange(GroupStatus.OPEN, "bo", "mine"), GroupChange(GroupStatus.RESOLVED, "chen")


def come(session: Session, name: str, at: int = 0, settled: bool = True, host: str = "gpu-1") -> str:
    """Returns the group of a new incident, of the fingerprint of this name."""
    incident = values.added(session, f"{name} {at} {host}", at)
    found = values.summary(f"v1:{name}", host=host)
    assert values.save(session, incident, values.verdict(), found, settled)
    group = incidents.read(session, incident).group
    assert group is not None
    return group.id


def decide(session: Session, group: str, change: GroupChange, at: int = 50) -> None:
    groups.change(session, group, change, values.START + timedelta(seconds=at))


def carry(session: Session, name: str, seen: dict[str, int], knowledge: str = TODAY) -> list[str]:
    found = {f"v1:{new}" if new else "": count for new, count in seen.items()}
    return fingerprint_upgrade.carry(session, f"v1:{name}", found, knowledge)


def listed(session: Session) -> dict[str, int]:
    return {group.id: group.count for group in groups.listed(session, GroupFilter(), 100, None).items}


def decision(group: Group) -> tuple[GroupStatus, str | None, str | None]:
    return group.status, group.owner, group.note


def names(fingerprints: Iterable[str]) -> list[str]:
    return [name.removeprefix("v1:") for name in fingerprints]


def test_a_group_continues_under_the_fingerprint_of_most_of_its_logs(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        decide(session, a, IGNORED)
        assert carry(session, "a", {"b": 7, "c": 2, "": 1}) == []
        assert names(groups.read(session, a).fingerprints) == ["a", "b"]
        assert come(session, "b", 60) == a
        c = come(session, "c", 61)
        assert (groups.read(session, c).came_from, groups.read(session, c).status) == (a, GroupStatus.OPEN)
        assert decision(groups.read(session, a)) == (GroupStatus.IGNORED, "ann", "known")
        assert listed(session) == {a: 2, c: 1}


@pytest.mark.parametrize("seen", [{"b": 6, "c": 4}, {"a": 4, "b": 6}, {"": 9, "b": 1}, {}])
def test_without_a_clear_majority_the_group_stays_and_new_groups_come_from_it(
    database: Database, seen: dict[str, int]
) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        decide(session, a, IGNORED)
        carry(session, "a", seen)
        assert names(groups.read(session, a).fingerprints) == ["a"]
        for name in sorted(set(seen) - {"", "a"}):
            assert groups.read(session, come(session, name, 60)).came_from == a
        assert come(session, "a", 62) == a


def test_each_fingerprint_is_checked_once_with_the_same_knowledge(database: Database) -> None:
    with database.transaction() as session:
        for name in "abc":
            come(session, name)
        decide(session, come(session, "b", 5), IGNORED)
        assert fingerprint_upgrade.left(session, TODAY) == 3
        assert names(fingerprint_upgrade.unlooked(session, TODAY))[0] == "b"
        carry(session, "b", {"b": 2})
        carry(session, "a", {"d": 2})
        assert names(fingerprint_upgrade.unlooked(session, TODAY)) == ["c"]
        assert not fingerprint_upgrade.is_left(session, "v1:a", TODAY)
        carry(session, "a", {"e": 2})  # by another process, which was slower
        assert names(groups.read(session, "v1:a").fingerprints) == ["a", "d"]
        carry(session, "c", {})
        assert fingerprint_upgrade.left(session, TODAY) == 0
        assert fingerprint_upgrade.left(session, LATER) == 4


def test_the_newest_incidents_are_checked(database: Database) -> None:
    with database.transaction() as session:
        group = come(session, "a", 0, host="gpu-9")
        for at in range(1, 15):
            come(session, "a", at)
        come(session, "b", 20)
        group_merging.split(session, group, "host", "gpu-9")
        assert [int(kept.id) for kept in fingerprint_upgrade.sample(session, "v1:a", 10)] == list(range(15, 5, -1))
        assert len(fingerprint_upgrade.sample(session, "v1:a", 100)) == 15


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        (IGNORED, OPEN, 1),
        (OPEN, IGNORED, 0),
        (RESOLVED, IGNORED, 0),
        (IGNORED, RESOLVED, 1),
        (RESOLVED, OPEN, 1),
        (IGNORED, None, 1),  # open, and nobody decided anything
        (IGNORED, IGNORED, 0),  # as many incidents: the older one
    ],
)
def test_if_two_groups_are_one_the_more_open_status_wins_and_the_other_is_kept(
    database: Database, first: GroupChange, second: GroupChange | None, stays: int
) -> None:
    with database.transaction() as session:
        both = [come(session, "a", 1), come(session, "b", 2)]
        for group, change in zip(both, (first, second), strict=True):
            if change is not None:
                decide(session, group, change)
        before = [decision(groups.read(session, group)) for group in both]
        carry(session, "a", {"b": 1})
        kept, merged = both[stays], both[1 - stays]
        assert groups.read(session, merged).merged_into == kept
        assert [decision(groups.read(session, group)) for group in both] == before
        assert listed(session) == {kept: 2}
        assert come(session, "b", 40) == kept
        (told, *_) = audit_log.listed(session, ChangeFilter(f"group {kept}"), 9, None).items
        assert (told.by, told.action, told.detail["groups"]) == ("torchtriage", "merge", [merged])
        group_merging.unmerge(session, kept, [merged])
        carry(session, "a", {"b": 1}, LATER)
        assert groups.read(session, merged).merged_into is None  # what people parted stays so


def test_groups_without_decisions_stay_separate(database: Database) -> None:
    with database.transaction() as session:
        a, b = come(session, "a", 1), come(session, "b", 2)
        decide(session, b, IGNORED)
        carry(session, "a", {"b": 1})
        assert listed(session) == {a: 1, b: 1}
        assert decision(groups.read(session, b)) == (GroupStatus.IGNORED, "ann", "known")


def test_joining_two_groups_passes_no_threshold(database: Database) -> None:
    with database.transaction() as session:
        for at in range(6):
            a, b = come(session, "a", at), come(session, "b", at)
        decide(session, a, IGNORED)
        carry(session, "a", {"b": 6})
        assert listed(session) == {b: 12}
        assert alerts.thresholds_passed(session, b, [10], []) == (None, None)


def test_merges_survive_an_upgrade(database: Database) -> None:
    with database.transaction() as session:
        a, b = come(session, "a", 1), come(session, "b", 2)
        group_merging.merge(session, a, [b])
        carry(session, "b", {"c": 1})
        assert come(session, "c", 3) == a
        group_merging.unmerge(session, a, [b])
        assert come(session, "c", 4) == b
        assert listed(session) == {a: 1, b: 3}


def test_splits_survive_an_upgrade(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        come(session, "a", 2, host="gpu-2")
        split = str(group_merging.split(session, a, "host", "gpu-2"))
        decide(session, split, IGNORED)
        early = come(session, "b", 3, settled=False, host="gpu-2")
        assert groups.read(session, early).provisional
        carry(session, "a", {"b": 2})
        assert listed(session) == {a: 1, split: 2}
        assert (come(session, "b", 4), come(session, "b", 5, host="gpu-2")) == (a, split)
        assert decision(groups.read(session, split)) == (GroupStatus.IGNORED, "ann", "known")


def test_a_split_silences_no_part_of_an_existing_group(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        come(session, "a", 2, host="gpu-2")
        split = str(group_merging.split(session, a, "host", "gpu-2"))
        decide(session, split, IGNORED)
        decide(session, a, OPEN)
        b = come(session, "b", 3, host="gpu-2")
        carry(session, "a", {"b": 2})
        assert listed(session) == {a: 2, split: 1}
        assert come(session, "b", 5, host="gpu-2") == a
        assert groups.read(session, b).merged_into == a


def test_a_wrong_fingerprint_is_split_off_permanently(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        decide(session, a, IGNORED)
        carry(session, "a", {"b": 1})
        come(session, "b", 2)
        for wrong in ("v1:c", "v1:a b=c"):
            with pytest.raises(CannotRegroup, match="no fingerprint"):
                group_merging.split_off(session, a, wrong)
        own = str(group_merging.split_off(session, a, "v1:b"))
        assert decision(groups.read(session, own)) == (GroupStatus.OPEN, None, None)
        assert listed(session) == {a: 1, own: 1}
        assert come(session, "b", 3) == own
        with pytest.raises(CannotRegroup, match="no other"):
            group_merging.split_off(session, a, "v1:a")
        carry(session, "a", {"b": 1}, LATER)
        assert listed(session) == {a: 1, own: 2}
        group_merging.merge(session, a, [own])
        assert come(session, "b", 4) == a


def held(session: Session, group: str, kind: NoticeKind = NoticeKind.NEW) -> None:
    outbox.put(session, Wanted(f"{kind} {group}", kind, "slack", group=group), values.START, 3600)


def due(session: Session, after: int = 0) -> list[str | None]:
    moment = values.START + timedelta(seconds=after)
    return [item.group for item in outbox.listed(session, SendState.READY, 9, None).items if item.due_at <= moment]


def test_incidents_received_meanwhile_find_their_group_without_an_alert(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        decide(session, a, IGNORED)
        b, c, d = (come(session, name, 60, settled=False) for name in "bcd")
        for group in (b, c, d):
            held(session, group)
        held(session, c, NoticeKind.COST)
        latest = come(session, "b", 61)
        assert latest == b
        (told,) = carry(session, "a", {"b": 8, "c": 2})
        assert incidents.read(session, told).group == GroupMark(a, GroupStatus.IGNORED, 3)
        assert listed(session) == {a: 3, c: 1, d: 1}
        assert (groups.read(session, b).id, groups.number_now(session, b)) == (a, int(a))
        assert len(incidents.listed(session, IncidentFilter(group=b), 9, None).items) == 3
        assert groups.read(session, c).came_from == a
        assert due(session) == []
        assert fingerprint_upgrade.settle(session, values.START) == 1  # d
        assert due(session) == [d]
        assert not groups.read(session, d).provisional
    with pytest.raises(NotFound), database.reading() as session:
        groups.read(session, "999")


def test_incidents_received_meanwhile_reopen_a_resolved_group(database: Database) -> None:
    with database.transaction() as session:
        a = come(session, "a", 1)
        decide(session, a, RESOLVED, at=50)
        come(session, "b", 40, settled=False)  # was on its way when it was decided
        came = come(session, "b", 60, settled=False)
        come(session, "b", 70, settled=False)
        (told,) = carry(session, "a", {"b": 1})
        group = groups.read(session, a)
        assert (group.status, group.count) == (GroupStatus.OPEN, 4)
        assert group.regressed_at == incidents.read(session, told).received_at == values.START + timedelta(seconds=60)
        assert groups.read(session, came).id == a
        assert [change.action for change in audit_log.listed(session, ChangeFilter(f"group {a}"), 9, None).items] == [
            "regress"
        ]


def test_a_decision_about_a_group_received_meanwhile_is_kept_too(database: Database) -> None:
    with database.transaction() as session:
        a, b = come(session, "a", 1), come(session, "b", 60, settled=False)
        decide(session, a, IGNORED)
        decide(session, b, OPEN)
        held(session, b)
        carry(session, "a", {"b": 1})
        assert groups.read(session, a).merged_into == b
        assert decision(groups.read(session, b)) == (GroupStatus.OPEN, "bo", "mine")
        fingerprint_upgrade.settle(session, values.START)
        assert due(session, 9999) == []


def test_the_number_of_an_emptied_group_leads_to_its_new_group(database: Database) -> None:
    with database.transaction() as session:
        a, b = come(session, "a", 1), come(session, "b", 2)
        (one,) = incidents.listed(session, IncidentFilter(group=a), 9, None).items
        assert verdicts.replace(session, one.id, values.verdict(), values.summary("v1:b"), values.START)
        assert groups.read(session, a).id == b
        (one, two) = incidents.listed(session, IncidentFilter(group=a), 9, None).items
        for known in (one, two):
            assert verdicts.replace(session, known.id, values.verdict(), values.summary("v1:c"), values.START)
        c = incidents.read(session, one.id).group
        assert c is not None
        assert [groups.read(session, gone).id for gone in (a, b)] == [c.id, c.id]
        assert listed(session) == {c.id: 2}


@pytest.mark.slow
def test_groups_are_carried_over_while_incidents_come_and_people_decide(database: Database) -> None:
    """On Postgres each of these holds rows that another wants: whoever holds them in another order waits for ever."""
    letters = "abcdef"
    with database.transaction() as session:
        first = [come(session, name, at) for at, name in enumerate(letters)]
        for group in first[::2]:
            decide(session, group, IGNORED)
        group_merging.merge(session, first[0], [first[1]])

    def act(number: int) -> None:
        name = letters[number % 6]
        with database.transaction() as session:
            if number % 4 == 3:
                carry(session, name, {"g" if number % 8 == 3 else f"{name}2": 9}, f"knowledge {number}")
            else:
                known = letters[(number + 1) % 6]
                come(session, known if number % 4 else f"{known}2", 100 + number, settled=bool(number % 5))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, range(64)))
    with database.reading() as session:
        counted = listed(session)
        assert sum(counted.values()) == 6 + 48
        for group, count in counted.items():
            assert len(incidents.listed(session, IncidentFilter(group=group), 100, None).items) == count
