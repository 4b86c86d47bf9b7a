"""Merges and splits groups.

Each new fingerprint gets its own group. A merge makes one group the parent of another and moves the incidents there;
fingerprints do not move, so a merge can be undone. A split separates incidents of one fingerprint by a property, which
becomes part of the fingerprint. Changes of fingerprints after an upgrade are in fingerprint_upgrade. Each function is
one step of the caller's transaction. Code that changes the incidents of a group must lock its fingerprints.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import VerdictSummary
from torchtriage.errors import BadInput
from torchtriage.storage.database import lock
from torchtriage.storage.group_assignment import Origin, create_group, final_group, lock_fingerprints, split_fingerprint
from torchtriage.storage.groups import row_of
from torchtriage.storage.tables import FingerprintRow, GoneGroupRow, GroupRow, IncidentRow, SplitRow, SuccessionRow

SPLIT_BY = {"cluster": IncidentRow.cluster, "user": IncidentRow.user, "host": IncidentRow.host}
_REGROUPING = "regrouping"  # people's merges and splits run one at a time
_UNSYNCHRONIZED = {"synchronize_session": False}


class CannotRegroup(BadInput):
    """This merge or split is not possible for these groups."""

    status = 409
    code = "cannot_regroup"


def lock_before_leaving(session: Session, number: int | None, also: Iterable[str] = ()) -> None:
    """Call this before locking an incident that leaves its group. `also` has the fingerprint of its new group, if any.

    Prevents merges and splits meanwhile. Takes all locks in one step, so that two transactions never wait for each
    other.
    """
    lock(session, _REGROUPING, shared=True)
    lock_groups(session, [] if number is None else [number], also)


def regroup_alone(session: Session) -> None:
    """Call this before merging or splitting groups. Meanwhile nobody else does, and no incident leaves its group."""
    lock(session, _REGROUPING)


def leave(session: Session, number: int, into: int | None = None) -> None:
    """Updates a group's count, times and cost after incidents left it; the last one went to the group `into`, if any.

    Deletes an empty group, unless a person has changed it: that also applies to later incidents. From then on, its
    number leads to `into`.
    """
    fingerprints = lock_groups(session, [number])
    row = recount(session, number)
    if row is None or row.count or row.owner or row.note or row.status != GroupStatus.OPEN:
        return
    under = session.execute(select(func.count()).where(GroupRow.merged_into == number)).scalar_one()
    inherited = select(SuccessionRow.successor).where(SuccessionRow.fingerprint.in_(fingerprints), SuccessionRow.heir)
    own = set(fingerprints) - set(session.execute(inherited).scalars())
    if not under and len(own) == 1 and row.merged_into is None:
        session.execute(delete(SuccessionRow).where(SuccessionRow.fingerprint.in_(fingerprints)))
        session.execute(delete(FingerprintRow).where(FingerprintRow.group_number == number))
        remove_group(session, number, into if into != number else None)


def remove_group(session: Session, number: int, into: int | None) -> None:
    """Deletes a group without incidents and fingerprints. Its number leads to the group `into`, if any."""
    if into is not None:
        led = update(GoneGroupRow).where(GoneGroupRow.group_number == number).values(group_number=into)
        session.execute(led, execution_options=_UNSYNCHRONIZED)
        session.add(GoneGroupRow(number=number, group_number=into))
        session.flush()
    session.execute(delete(GroupRow).where(GroupRow.number == number))


def merge(session: Session, group_id: str, others: Iterable[str]) -> None:
    """Merges other groups into one, with their current and later incidents. Raises NotFound and CannotRegroup."""
    regroup_alone(session)
    into = row_of(session, group_id)
    rows = [row_of(session, other) for other in others]
    lock_groups(session, [into.number, *(row.number for row in rows)])
    for row in (into, *rows):
        session.refresh(row)
        if row.merged_into is not None:
            raise CannotRegroup(f"group {row.number} is merged into group {row.merged_into}", group=str(row.number))
    if into in rows or len(set(rows)) != len(rows):
        raise CannotRegroup("a group can't be merged with itself")
    for row in rows:
        attach_group(session, row, into)


def attach_group(session: Session, row: GroupRow, into: GroupRow) -> None:
    """Merges one group into another. The caller has locked both, and neither is merged into a third."""
    row.merged_into = into.number
    move(session, _fingerprints(session, _tree(session, [row.number])), into.number)
    recount(session, row.number)
    recount(session, into.number)


def unmerge(session: Session, group_id: str, others: Iterable[str]) -> None:
    """Undoes merges into a group: the others get their incidents back. Raises NotFound and CannotRegroup."""
    regroup_alone(session)
    into = row_of(session, group_id)
    rows = [row_of(session, other) for other in others]
    lock_groups(session, [final_group(session, into.number)])
    for row in rows:
        session.refresh(row)
        if row.merged_into != into.number:
            raise CannotRegroup(f"group {row.number} is not merged into group {into.number}", group=str(row.number))
        row.merged_into = None
        session.flush()
        move(session, _fingerprints(session, _tree(session, [row.number])), row.number)
        recount(session, row.number)
    recount(session, final_group(session, into.number))


def split(session: Session, group_id: str, field: str, value: str) -> int:
    """Moves the current and later incidents of a group whose `field`, a key of SPLIT_BY, has this value to a new group.
    Returns its number. Raises NotFound and CannotRegroup."""
    regroup_alone(session)
    row = row_of(session, group_id)
    lock_groups(session, [row.number])
    member = IncidentRow.group_number == row.number
    theirs = session.execute(
        select(IncidentRow.fingerprint).where(member, SPLIT_BY[field] == value).distinct()
    ).scalars()
    moved = {fingerprint: split_fingerprint(fingerprint, field, value) for fingerprint in theirs if fingerprint}
    if not moved:
        raise CannotRegroup(f"no incident of the group has the {field} {value}")
    if not session.execute(select(IncidentRow.number).where(member, SPLIT_BY[field] != value).limit(1)).scalar():
        raise CannotRegroup(f"all incidents of the group have the {field} {value}")
    words = VerdictSummary(row.outcome, None, row.signature, row.entry, row.title, None, "")
    number = create_group(session, sorted(moved.values()), words, row.last_seen)
    for whole, part in moved.items():
        session.add(SplitRow(fingerprint=whole, field=field, value=value))
        them = member & (IncidentRow.fingerprint == whole) & (SPLIT_BY[field] == value)
        changes = {"fingerprint": part, "group_number": number}
        session.execute(update(IncidentRow).where(them).values(changes), execution_options=_UNSYNCHRONIZED)
    recount(session, number)
    recount(session, row.number)
    return number


def split_off(session: Session, group_id: str, fingerprint: str) -> int:
    """Moves one of a group's fingerprints, with its current and later incidents, to a new group. Returns its number.

    Raises NotFound and CannotRegroup.
    """
    regroup_alone(session)
    row = row_of(session, group_id)
    root = final_group(session, row.number)
    lock_groups(session, [root])
    own = _fingerprints(session, {row.number})
    if fingerprint not in own:
        raise CannotRegroup(f"the group has no fingerprint {fingerprint[:100]}")
    if len(own) == 1:
        raise CannotRegroup("the group has no other fingerprint")
    words = VerdictSummary(row.outcome, None, row.signature, row.entry, row.title, None, "")
    number = create_group(session, [], words, row.last_seen, Origin(came_from=row.number))
    leads = update(FingerprintRow).where(FingerprintRow.fingerprint == fingerprint).values(group_number=number)
    session.execute(leads, execution_options=_UNSYNCHRONIZED)
    move(session, [fingerprint], number)
    recount(session, number)
    recount(session, root)
    return number


def lock_groups(session: Session, numbers: Iterable[int], also: Iterable[str] = ()) -> list[str]:
    """Locks the fingerprints of groups and of groups merged into them, and `also` these. Returns those of
    the groups."""
    found = _fingerprints(session, _tree(session, numbers))
    lock_fingerprints(session, {*found, *also})
    return found


def _tree(session: Session, numbers: Iterable[int]) -> set[int]:
    """Returns the groups and all groups merged into them."""
    found = set(numbers)
    new = set(found)
    while new:
        under = select(GroupRow.number).where(GroupRow.merged_into.in_(new))
        new = set(session.execute(under).scalars()) - found
        found |= new
    return found


def _fingerprints(session: Session, numbers: set[int]) -> list[str]:
    return list(
        session.execute(select(FingerprintRow.fingerprint).where(FingerprintRow.group_number.in_(numbers))).scalars()
    )


def move(session: Session, fingerprints: Iterable[str], number: int) -> None:
    """Puts the incidents of these fingerprints into a group. Does not update counts."""
    moving = update(IncidentRow).where(
        IncidentRow.fingerprint.in_(list(fingerprints)), IncidentRow.group_number.is_not(None)
    )
    session.execute(moving.values(group_number=number), execution_options=_UNSYNCHRONIZED)


def recount(session: Session, number: int) -> GroupRow | None:
    """Updates a group's count, times and cost from its incidents, and returns it. An empty group keeps its times."""
    session.flush()
    known = select(
        func.count(),
        func.min(IncidentRow.received_at),
        func.max(IncidentRow.received_at),
        func.sum(IncidentRow.gpu_hours),
    )
    count, first, last, gpu_hours = session.execute(known.where(IncidentRow.group_number == number)).one()
    row = session.get(GroupRow, number, with_for_update=True)
    if row is None:
        return None
    row.count, row.gpu_hours = count, gpu_hours
    if count:
        row.first_seen, row.last_seen = first, last
    session.flush()
    return row
