"""Moves groups to new fingerprints after an upgrade: old and new fingerprints in, groups under the new ones out.

Later knowledge, and later rules of fingerprints, give the logs of one fingerprint another, or several others. People
decided about the group and not about its fingerprint, so it goes on under the new one; see
docs/decisions/0026-groups-outlive-their-fingerprints.md for what becomes of it where several are old or new. Each
function is one step of a transaction that its caller opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from torchtriage.domain.access import Change
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import State
from torchtriage.domain.notice import NoticeKind, SendState
from torchtriage.storage import audit_log, retriage_reads
from torchtriage.storage.group_assignment import BY_ITSELF, final_group, record_reopening, split_fingerprint
from torchtriage.storage.group_merging import SPLIT_BY, attach_group, lock_groups, recount, regroup_alone, remove_group
from torchtriage.storage.retriage_reads import TriagedIncident
from torchtriage.storage.tables import FingerprintRow, GroupRow, IncidentRow, OutboxRow, SplitRow, SuccessionRow

_SHARE = 2 / 3  # of the logs that were looked at: so many make a fingerprint the heir
# What stays where two groups turn out to be one: nothing that somebody left open falls silent.
_LOUDNESS = {GroupStatus.IGNORED: 0, GroupStatus.RESOLVED: 1, GroupStatus.OPEN: 2}
_UNSYNCHRONIZED = {"synchronize_session": False}
_Under = aliased(GroupRow)
# What somebody decided about, and not only the rules.
_DECIDED = or_(
    GroupRow.status != GroupStatus.OPEN,
    GroupRow.owner.is_not(None),
    GroupRow.note.is_not(None),
    GroupRow.muted_until.is_not(None),
    GroupRow.merged_into.is_not(None),
    select(_Under.number).where(_Under.merged_into == GroupRow.number).exists(),
)


def left(session: Session, knowledge: str) -> int:
    """-> how many fingerprints were not looked at with this knowledge."""
    return session.execute(select(func.count()).where(*_of_other(knowledge))).scalar_one()


def unlooked(session: Session, knowledge: str) -> list[str]:
    """-> those fingerprints, first of groups that somebody decided about; else by chance, as several processes may work
    at it."""
    query = select(FingerprintRow.fingerprint).join(GroupRow, GroupRow.number == FingerprintRow.group_number)
    return list(session.execute(query.where(*_of_other(knowledge)).order_by(_DECIDED.desc(), func.random())).scalars())


def is_left(session: Session, fingerprint: str, knowledge: str) -> bool:
    """-> whether nobody looked at it meanwhile."""
    query = select(func.count()).where(FingerprintRow.fingerprint == fingerprint, *_of_other(knowledge))
    return bool(session.execute(query).scalar_one())


def sample(session: Session, fingerprint: str, most: int) -> list[TriagedIncident]:
    """-> the newest incidents of a fingerprint, those that people split off included."""
    theirs = [fingerprint, *_parts(session, fingerprint)]
    query = select(IncidentRow.number).where(IncidentRow.fingerprint.in_(theirs), IncidentRow.state == State.TRIAGED)
    numbers = session.execute(query.order_by(IncidentRow.number.desc()).limit(most)).scalars()
    return list(reversed(retriage_reads.some(session, list(numbers))))


def carry(session: Session, fingerprint: str, seen: Mapping[str, int], knowledge: str) -> list[str]:
    """Notes where the logs of a fingerprint belong now: `seen` is how many of those looked at have which one.

    Its group goes on under the one that most of them have. -> incidents that came meanwhile and have their right group
    now: people must be told of them what there is to tell there.
    """
    regroup_alone(session)
    row = session.get(FingerprintRow, fingerprint)
    if row is None or row.knowledge == knowledge:
        return []
    row.knowledge = knowledge
    others = [new for new in seen if new and new != fingerprint]
    heir = next((new for new in others if seen[new] >= _SHARE * sum(seen.values())), None)
    _hold(session, [fingerprint, *others])
    told: list[str] = []
    for new in others:
        known = session.get(SuccessionRow, (fingerprint, new))
        if new != heir and known is None:
            session.add(SuccessionRow(fingerprint=fingerprint, successor=new, heir=False))
            _came_out(session, row.group_number, new)
        elif new == heir and not (
            known and known.heir
        ):  # else it was before, and people may have separated the two since
            told += _bequeath(session, fingerprint, new, knowledge)
    return told


def settle(session: Session, now: datetime) -> int:
    """Comes when all were looked at: groups that were made meanwhile are new, and what must be said about them is due
    -> how many there were."""
    provisional = select(GroupRow.number).where(GroupRow.provisional)
    _tell_now(session, [OutboxRow.group_number.in_(provisional)], now)
    made = update(GroupRow).where(GroupRow.provisional).values(provisional=False).returning(GroupRow.number)
    return len(session.execute(made, execution_options=_UNSYNCHRONIZED).scalars().all())


def _of_other(knowledge: str) -> list[ColumnElement[bool]]:
    # What follows a blank was added where people split a group, and goes where the rest of it does.
    return [FingerprintRow.knowledge.is_distinct_from(knowledge), ~FingerprintRow.fingerprint.contains(" ")]


def _rules(session: Session, fingerprint: str) -> list[SplitRow]:
    rules = select(SplitRow).where(SplitRow.fingerprint == fingerprint).order_by(SplitRow.number)
    return list(session.execute(rules).scalars())


def _parts(session: Session, fingerprint: str) -> Iterator[str]:
    """Yields the fingerprints of what people split off one."""
    for rule in _rules(session, fingerprint):
        part = split_fingerprint(fingerprint, rule.field, rule.value)
        yield part
        yield from _parts(session, part)


def _hold(session: Session, fingerprints: list[str]) -> None:
    """Holds, in one go, all that the group of the first can touch on its way to the others."""
    suffixes = ["", *(part.removeprefix(fingerprints[0]) for part in _parts(session, fingerprints[0]))]
    names = {name + suffix for name in fingerprints for suffix in suffixes}
    groups = select(FingerprintRow.group_number).where(FingerprintRow.fingerprint.in_(names)).distinct()
    lock_groups(session, [final_group(session, number) for number in session.execute(groups).scalars()], names)


def _bequeath(session: Session, old: str, new: str, knowledge: str) -> list[str]:
    """Lets the group of one fingerprint go on under another, and so what people split off it -> as `carry`."""
    mine, theirs = session.get(FingerprintRow, old), session.get(FingerprintRow, new)
    if mine is None:  # of a part that had no incident left
        return []
    session.merge(SuccessionRow(fingerprint=old, successor=new, heir=True))
    told: list[str] = []
    silent = _LOUDNESS[GroupStatus.IGNORED]
    if theirs is None:
        session.add(FingerprintRow(fingerprint=new, group_number=mine.group_number, knowledge=knowledge))
    elif (own := _root(session, mine)) is not (other := _root(session, theirs)):
        if other.provisional and not _is_decided(session, other):
            told += _absorb(session, mine.group_number, own, other)
        else:
            silent = _LOUDNESS[GroupStatus(other.status)]
            _unite(session, mine, own, other, new)
    session.flush()
    session.expire_all()
    for rule in _rules(session, old):
        told += _bequeath_part(session, rule, new, silent, knowledge)
    return told


def _bequeath_part(session: Session, rule: SplitRow, new: str, silent: int, knowledge: str) -> list[str]:
    """Splits off the new fingerprint what was split off the old one, unless the part says less than `silent`: than a
    group that was there -> as `carry`."""
    part = session.get(FingerprintRow, split_fingerprint(rule.fingerprint, rule.field, rule.value))
    if part is None or _LOUDNESS[GroupStatus(_root(session, part).status)] < silent:
        return []
    if not any((known.field, known.value) == (rule.field, rule.value) for known in _rules(session, new)):
        session.add(SplitRow(fingerprint=new, field=rule.field, value=rule.value))
    own = split_fingerprint(new, rule.field, rule.value)
    told = _bequeath(session, part.fingerprint, own, knowledge)
    root, whole = (_root(session, session.get_one(FingerprintRow, name)) for name in (own, new))
    them = (IncidentRow.fingerprint == new) & (SPLIT_BY[rule.field] == rule.value)
    told += _move_in(session, them, root, {"fingerprint": own})
    recount(session, whole.number)
    return told


def _unite(session: Session, mine: FingerprintRow, own: GroupRow, other: GroupRow, new: str) -> None:
    """A group goes over to a fingerprint whose group is one of its own. `own` and `other` are where both lead to."""
    if not (_is_decided(session, session.get_one(GroupRow, mine.group_number)) or _is_decided(session, own)):
        return  # There is nothing to carry over: its incidents go there with the next retriage.
    stays, goes = sorted((own, other), key=_weight, reverse=True)
    attach_group(session, goes, stays)
    # That there are more of them now is no news of the failure.
    stays.told_count = max(stays.told_count or 0, stays.count)
    stays.told_gpu_hours = max(stays.told_gpu_hours or 0, stays.gpu_hours or 0)
    if other.provisional:
        _is_known(session, other)
    detail = {"groups": [str(goes.number)], "fingerprint": mine.fingerprint, "successor": new}
    audit_log.add(session, Change(datetime.now(UTC), BY_ITSELF, "merge", f"group {stays.number}", detail))


def _absorb(session: Session, number: int, root: GroupRow, new: GroupRow) -> list[str]:
    """Makes a group that came meanwhile part of the one that it is: of group `number`, which leads to `root`.

    What had to be said about it as a new failure is not. -> as `carry`.
    """
    leads = update(FingerprintRow).where(FingerprintRow.group_number == new.number).values(group_number=number)
    session.execute(leads, execution_options=_UNSYNCHRONIZED)
    if new.last_seen >= root.last_seen:
        root.title, root.signature, root.entry, root.outcome = new.title, new.signature, new.entry, new.outcome
    told = _move_in(session, IncidentRow.group_number == new.number, root, {})
    remove_group(session, new.number, number)
    return told


def _move_in(session: Session, them: ColumnElement[bool], group: GroupRow, changes: dict[str, Any]) -> list[str]:
    """Moves incidents that came meanwhile into a group -> the one of which to tell there; a resolved group is open
    again where one is younger than the decision, as when it had come there at once."""
    query = select(IncidentRow.number, IncidentRow.received_at).where(them).order_by(IncidentRow.received_at)
    came = session.execute(query).all()
    if not came:
        return []
    moving = update(IncidentRow).where(them).values({"group_number": group.number} | changes)
    session.execute(moving, execution_options=_UNSYNCHRONIZED)
    recount(session, group.number)
    decided = group.resolved_at if group.status == GroupStatus.RESOLVED else None
    again = next((known for known in came if decided and known.received_at > decided), None)
    if again is not None:
        group.status, group.regressed_at, group.muted_until = GroupStatus.OPEN, again.received_at, None
        record_reopening(session, group.number)
    session.flush()
    return [str((again or came[-1]).number)]


def _came_out(session: Session, number: int, new: str) -> None:
    """Notes that the group of a fingerprint, if it came meanwhile, came out of another one: no new failure."""
    known = session.get(FingerprintRow, new)
    group = session.get_one(GroupRow, known.group_number) if known else None
    if group is not None and group.provisional:
        group.came_from = number
        _is_known(session, group)


def _is_known(session: Session, group: GroupRow) -> None:
    """Nobody is told of a group that came meanwhile that it is new; what else there is to say about it is due."""
    group.provisional = False
    session.flush()
    here = OutboxRow.group_number == group.number
    untold = delete(OutboxRow).where(here, OutboxRow.kind == NoticeKind.NEW, OutboxRow.tries == 0)
    session.execute(untold, execution_options=_UNSYNCHRONIZED)
    _tell_now(session, [here], datetime.now(UTC))


def _tell_now(session: Session, which: list[ColumnElement[bool]], now: datetime) -> None:
    """Has what was held back sent."""
    held = [OutboxRow.state == SendState.READY, OutboxRow.tries == 0, OutboxRow.due_at > now]
    due = update(OutboxRow).where(*which, *held).values(due_at=now)
    session.execute(due, execution_options=_UNSYNCHRONIZED)


def _root(session: Session, row: FingerprintRow) -> GroupRow:
    """-> the group in which the incidents of a fingerprint are."""
    return session.get_one(GroupRow, final_group(session, row.group_number))


def _is_decided(session: Session, group: GroupRow) -> bool:
    query = select(GroupRow.number).where(GroupRow.number == group.number, _DECIDED)
    return session.execute(query).first() is not None


def _weight(group: GroupRow) -> tuple[Any, ...]:
    """-> by what the decision about one of two groups that are one stays in force; the other's is kept beside it."""
    return _LOUDNESS[GroupStatus(group.status)], bool(group.owner or group.note), group.count, -group.number
