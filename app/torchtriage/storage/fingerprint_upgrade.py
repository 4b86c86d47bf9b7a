"""Moves groups to new fingerprints after an upgrade.

New knowledge, or new rules for fingerprints, can give the logs of one fingerprint another one, or several. People's
decisions are about the group and not about its fingerprint, so the group continues under the new fingerprint. For
several old or new ones see docs/decisions/0026-groups-outlive-their-fingerprints.md. Each function is one step of the
caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from torchtriage.domain.access import AuditLine
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import State
from torchtriage.domain.notice import NoticeKind, SendState
from torchtriage.storage import audit_log, retriage_reads
from torchtriage.storage.group_assignment import BY_ITSELF, final_group, record_reopening, split_fingerprint
from torchtriage.storage.group_merging import SPLIT_BY, attach_group, lock_groups, recount, regroup_alone, remove_group
from torchtriage.storage.retriage_reads import TriagedIncident
from torchtriage.storage.tables import FingerprintRow, GroupRow, IncidentRow, OutboxRow, SplitRow, SuccessionRow

_SHARE = 2 / 3  # if this share of the checked logs has one new fingerprint, the group continues under it
# If two groups become one, the status with the higher number stays, so that an open group is not silenced.
_LOUDNESS = {GroupStatus.IGNORED: 0, GroupStatus.RESOLVED: 1, GroupStatus.OPEN: 2}
_UNSYNCHRONIZED = {"synchronize_session": False}
_Under = aliased(GroupRow)
# Groups that a person has changed.
_DECIDED = or_(
    GroupRow.status != GroupStatus.OPEN,
    GroupRow.owner.is_not(None),
    GroupRow.note.is_not(None),
    GroupRow.muted_until.is_not(None),
    GroupRow.merged_into.is_not(None),
    select(_Under.number).where(_Under.merged_into == GroupRow.number).exists(),
)


def left(session: Session, knowledge: str) -> int:
    """Returns the number of fingerprints that were not checked with this knowledge."""
    return session.execute(select(func.count()).where(*_of_other(knowledge))).scalar_one()


def unlooked(session: Session, knowledge: str) -> list[str]:
    """Returns those fingerprints. Groups that a person has changed come first, then random order, because several
    processes may share the work."""
    query = select(FingerprintRow.fingerprint).join(GroupRow, GroupRow.number == FingerprintRow.group_number)
    return list(session.execute(query.where(*_of_other(knowledge)).order_by(_DECIDED.desc(), func.random())).scalars())


def is_left(session: Session, fingerprint: str, knowledge: str) -> bool:
    """Returns whether this fingerprint is still unchecked."""
    query = select(func.count()).where(FingerprintRow.fingerprint == fingerprint, *_of_other(knowledge))
    return bool(session.execute(query).scalar_one())


def sample(session: Session, fingerprint: str, most: int) -> list[TriagedIncident]:
    """Returns the newest incidents of a fingerprint, including those that people split off."""
    theirs = [fingerprint, *_parts(session, fingerprint)]
    query = select(IncidentRow.number).where(IncidentRow.fingerprint.in_(theirs), IncidentRow.state == State.TRIAGED)
    numbers = session.execute(query.order_by(IncidentRow.number.desc()).limit(most)).scalars()
    return list(reversed(retriage_reads.some(session, list(numbers))))


def carry(session: Session, fingerprint: str, seen: Mapping[str, int], knowledge: str) -> list[str]:
    """Records where the logs of a fingerprint belong now. `seen` has the number of checked logs per new fingerprint.

    If most logs have the same new one, the group continues under it. Returns incidents received meanwhile that are now
    in their right group, so that the caller can alert people.
    """
    regroup_alone(session)
    row = session.get(FingerprintRow, fingerprint)
    if row is None or row.knowledge == knowledge:
        return []
    row.knowledge = knowledge
    others = [new for new in seen if new and new != fingerprint]
    heir = next((new for new in others if seen[new] >= _SHARE * sum(seen.values())), None)
    _hold(session, [fingerprint, *others])
    changes: list[str] = []
    for new in others:
        known = session.get(SuccessionRow, (fingerprint, new))
        if new != heir and known is None:
            session.add(SuccessionRow(fingerprint=fingerprint, successor=new, heir=False))
            _record_arrival(session, row.group_number, new)
        # Otherwise this was done before, and people may have separated the two since.
        elif new == heir and not (known and known.heir):
            changes += _hand_over(session, fingerprint, new, knowledge)
    return changes


def settle(session: Session, now: datetime) -> int:
    """Called when all fingerprints are checked. Groups made meanwhile are new, and their alerts are due now. Returns
    the number of these groups."""
    provisional = select(GroupRow.number).where(GroupRow.provisional)
    _send_now(session, [OutboxRow.group_number.in_(provisional)], now)
    made = update(GroupRow).where(GroupRow.provisional).values(provisional=False).returning(GroupRow.number)
    return len(session.execute(made, execution_options=_UNSYNCHRONIZED).scalars().all())


def _of_other(knowledge: str) -> list[ColumnElement[bool]]:
    # The part after a blank was added by a split, and follows the rest of the fingerprint.
    return [FingerprintRow.knowledge.is_distinct_from(knowledge), ~FingerprintRow.fingerprint.contains(" ")]


def _rules(session: Session, fingerprint: str) -> list[SplitRow]:
    rules = select(SplitRow).where(SplitRow.fingerprint == fingerprint).order_by(SplitRow.number)
    return list(session.execute(rules).scalars())


def _parts(session: Session, fingerprint: str) -> Iterator[str]:
    """Yields the fingerprints that people split off this one."""
    for rule in _rules(session, fingerprint):
        part = split_fingerprint(fingerprint, rule.field, rule.value)
        yield part
        yield from _parts(session, part)


def _hold(session: Session, fingerprints: list[str]) -> None:
    """Locks, in one step, all fingerprints that moving the first one's group to the others can affect."""
    suffixes = ["", *(part.removeprefix(fingerprints[0]) for part in _parts(session, fingerprints[0]))]
    names = {name + suffix for name in fingerprints for suffix in suffixes}
    groups = select(FingerprintRow.group_number).where(FingerprintRow.fingerprint.in_(names)).distinct()
    lock_groups(session, [final_group(session, number) for number in session.execute(groups).scalars()], names)


def _hand_over(session: Session, old: str, new: str, knowledge: str) -> list[str]:
    """Continues the group of one fingerprint, and the parts split off it, under another fingerprint. Returns incidents
    as `carry` does."""
    mine, theirs = session.get(FingerprintRow, old), session.get(FingerprintRow, new)
    if mine is None:  # a part without incidents
        return []
    session.merge(SuccessionRow(fingerprint=old, successor=new, heir=True))
    changes: list[str] = []
    silent = _LOUDNESS[GroupStatus.IGNORED]
    if theirs is None:
        session.add(FingerprintRow(fingerprint=new, group_number=mine.group_number, knowledge=knowledge))
    elif (own := _root(session, mine)) is not (other := _root(session, theirs)):
        if other.provisional and not _is_decided(session, other):
            changes += _merge_into(session, mine.group_number, own, other)
        else:
            silent = _LOUDNESS[GroupStatus(other.status)]
            _unite(session, mine, own, other, new)
    session.flush()
    session.expire_all()
    for rule in _rules(session, old):
        changes += _hand_over_split(session, rule, new, silent, knowledge)
    return changes


def _hand_over_split(session: Session, rule: SplitRow, new: str, silent: int, knowledge: str) -> list[str]:
    """Repeats a split of the old fingerprint on the new one. Skips it if the part's status ranks below `silent`, which
    is the status of an existing group. Returns incidents as `carry` does."""
    part = session.get(FingerprintRow, split_fingerprint(rule.fingerprint, rule.field, rule.value))
    if part is None or _LOUDNESS[GroupStatus(_root(session, part).status)] < silent:
        return []
    if not any((known.field, known.value) == (rule.field, rule.value) for known in _rules(session, new)):
        session.add(SplitRow(fingerprint=new, field=rule.field, value=rule.value))
    own = split_fingerprint(new, rule.field, rule.value)
    changes = _hand_over(session, part.fingerprint, own, knowledge)
    root, whole = (_root(session, session.get_one(FingerprintRow, name)) for name in (own, new))
    them = (IncidentRow.fingerprint == new) & (SPLIT_BY[rule.field] == rule.value)
    changes += _move_in(session, them, root, {"fingerprint": own})
    recount(session, whole.number)
    return changes


def _unite(session: Session, mine: FingerprintRow, own: GroupRow, other: GroupRow, new: str) -> None:
    """Merges a group into the existing group of its new fingerprint, or the reverse. `own` and `other` are their final
    groups."""
    if not (_is_decided(session, session.get_one(GroupRow, mine.group_number)) or _is_decided(session, own)):
        return  # Nothing to carry over: the next retriage moves its incidents.
    stays, goes = sorted((own, other), key=_weight, reverse=True)
    attach_group(session, goes, stays)
    # The sum of both is no news about the failure, so it must not pass a threshold.
    stays.told_count = max(stays.told_count or 0, stays.count)
    stays.told_gpu_hours = max(stays.told_gpu_hours or 0, stays.gpu_hours or 0)
    if other.provisional:
        _is_known(session, other)
    detail = {"groups": [str(goes.number)], "fingerprint": mine.fingerprint, "successor": new}
    audit_log.add(session, AuditLine(datetime.now(UTC), BY_ITSELF, "merge", f"group {stays.number}", detail))


def _merge_into(session: Session, number: int, root: GroupRow, new: GroupRow) -> list[str]:
    """Makes a group received meanwhile part of group `number`, whose final group is `root`. Its alert as a new failure
    is not sent.

    Returns incidents as `carry` does.
    """
    leads = update(FingerprintRow).where(FingerprintRow.group_number == new.number).values(group_number=number)
    session.execute(leads, execution_options=_UNSYNCHRONIZED)
    if new.last_seen >= root.last_seen:
        root.title, root.signature, root.entry, root.outcome = new.title, new.signature, new.entry, new.outcome
    changes = _move_in(session, IncidentRow.group_number == new.number, root, {})
    remove_group(session, new.number, number)
    return changes


def _move_in(session: Session, them: ColumnElement[bool], group: GroupRow, changes: dict[str, Any]) -> list[str]:
    """Moves incidents received meanwhile into a group. Returns the incident to alert people about. A resolved group
    reopens if one of them is newer than its resolution, as if it had joined at once."""
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


def _record_arrival(session: Session, number: int, new: str) -> None:
    """Records that a group received meanwhile, under the new fingerprint, comes from another group and is no new
    failure."""
    known = session.get(FingerprintRow, new)
    group = session.get_one(GroupRow, known.group_number) if known else None
    if group is not None and group.provisional:
        group.came_from = number
        _is_known(session, group)


def _is_known(session: Session, group: GroupRow) -> None:
    """Marks a group received meanwhile as known: its alert as a new failure is deleted, its other alerts
    are due now."""
    group.provisional = False
    session.flush()
    here = OutboxRow.group_number == group.number
    obsolete_notices = delete(OutboxRow).where(here, OutboxRow.kind == NoticeKind.NEW, OutboxRow.tries == 0)
    session.execute(obsolete_notices, execution_options=_UNSYNCHRONIZED)
    _send_now(session, [here], datetime.now(UTC))


def _send_now(session: Session, which: list[ColumnElement[bool]], now: datetime) -> None:
    """Makes delayed messages due now."""
    held = [OutboxRow.state == SendState.READY, OutboxRow.tries == 0, OutboxRow.due_at > now]
    due = update(OutboxRow).where(*which, *held).values(due_at=now)
    session.execute(due, execution_options=_UNSYNCHRONIZED)


def _root(session: Session, row: FingerprintRow) -> GroupRow:
    """Returns the group that contains the incidents of a fingerprint."""
    return session.get_one(GroupRow, final_group(session, row.group_number))


def _is_decided(session: Session, group: GroupRow) -> bool:
    query = select(GroupRow.number).where(GroupRow.number == group.number, _DECIDED)
    return session.execute(query).first() is not None


def _weight(group: GroupRow) -> tuple[Any, ...]:
    """Returns the sort key that decides which of two merged groups stays on top."""
    return _LOUDNESS[GroupStatus(group.status)], bool(group.owner or group.note), group.count, -group.number
