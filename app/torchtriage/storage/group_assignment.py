"""Finds the group of a verdict's incident, by its fingerprint and by people's merges and splits (see group_merging).

Each function is one step of the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

from sqlalchemy import Float, Integer, Table, Text, Update, bindparam, case, func, null, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.access import AuditLine
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import Job, VerdictSummary
from torchtriage.storage import audit_log
from torchtriage.storage.database import lock
from torchtriage.storage.tables import FingerprintRow, GroupRow, SplitRow, SuccessionRow

BY_ITSELF = "torchtriage"  # the author of automatic changes in the audit log


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known about a new group: the knowledge of its first verdict, the incident's earlier group, and whether it
    may prove to be an older group under a new fingerprint."""

    knowledge: str | None = None
    came_from: int | None = None
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class NewMember:
    """An incident that joins a group: its fingerprint, its verdict's summary, and its time of receipt."""

    fingerprint: str
    summary: VerdictSummary
    seen: datetime
    origin: Origin


def join(session: Session, incidents: Sequence[NewMember]) -> list[int]:
    """Adds incidents to the groups of their fingerprints, and creates missing groups. Returns the groups' numbers.

    If an incident is newer than its group's resolution, the group reopens and is unmuted. The audit log records that.
    """
    if not incidents:
        return []
    fingerprints = sorted({one.fingerprint for one in incidents})
    lock_fingerprints(session, fingerprints)
    known: dict[str, tuple[int, datetime | None]] = {}  # the final group, and its time of resolution or None
    connection = session.connection()
    for own in connection.execute(_GROUPS_OF, {"these": fingerprints}).all():
        known[own.fingerprint] = own.number, own.resolved_at
        if own.merged_into is not None:
            number = final_group(session, own.merged_into)
            known[own.fingerprint] = number, connection.execute(_RESOLVED, {"of": number}).scalar()
    numbers, more = list[int](), list[tuple[int, NewMember]]()
    for one in incidents:
        if one.fingerprint in known:
            numbers.append(known[one.fingerprint][0])
            more.append((numbers[-1], one))
        else:
            numbers.append(_make_for(session, one))
            known[one.fingerprint] = numbers[-1], None
    resolved = {number: at for number, at in known.values() if at is not None}
    # All transactions lock groups in the same order. Each group gets all its new incidents in one statement.
    more.sort(key=lambda joining: joining[0])
    for number, joining in groupby(more, lambda joining: joining[0]):
        members = [one for _, one in joining]
        costs = any(one.summary.gpu_hours is not None for one in members)
        connection.execute(_JOIN[costs], _more(number, members, resolved.get(number)))
    for number, one in more:
        if number in resolved and resolved[number] < one.seen:
            del resolved[number]  # it is open now
            record_reopening(session, number)
    return numbers


def _make_for(session: Session, one: NewMember) -> int:
    """Creates the group of a fingerprint that has none, and returns its number."""
    before = session.connection().execute(_BEFORE, {"of": one.fingerprint})
    came_from = one.origin.came_from or before.scalar()
    origin = replace(one.origin, came_from=came_from, provisional=one.origin.provisional and came_from is None)
    return create_group(session, [one.fingerprint], one.summary, one.seen, origin)


def _more(number: int, members: Sequence[NewMember], resolved: datetime | None) -> dict[str, Any]:
    """Returns the values by which new members change their group. `resolved` is when the group was
    resolved, or None."""
    latest = max(reversed(members), key=lambda one: one.seen)  # the last received one of those with equal times
    return {
        "of": number,
        "more": len(members),
        "first": min(one.seen for one in members),
        "last": latest.seen,
        "back": next((one.seen for one in members if resolved is not None and resolved < one.seen), latest.seen),
        "its_title": latest.summary.title,
        "its_signature": latest.summary.signature,
        "its_entry": latest.summary.entry,
        "its_outcome": latest.summary.outcome,
        "its_hours": sum(one.summary.gpu_hours or 0 for one in members),
    }


def record_reopening(session: Session, number: int) -> None:
    """Records in the audit log that a resolved group reopened."""
    detail = {"before": {"status": GroupStatus.RESOLVED.value}, "after": {"status": GroupStatus.OPEN.value}}
    audit_log.add(session, AuditLine(datetime.now(UTC), BY_ITSELF, "regress", f"group {number}", detail))


def apply_splits(session: Session, summaries: Sequence[tuple[VerdictSummary, Job]]) -> list[VerdictSummary]:
    """Returns the summaries with the fingerprints that result from people's splits."""
    wanted = list({summary.fingerprint for summary, _ in summaries if summary.fingerprint})
    rules = session.connection().execute(_SPLITS, {"these": wanted}).all() if wanted else []
    found = []
    for summary, job in summaries:
        values = {"cluster": job.cluster, "user": job.user, "host": summary.host}
        own = next((r for r in rules if r.fingerprint == summary.fingerprint and values[r.field] == r.value), None)
        if own is not None:
            summary = replace(summary, fingerprint=split_fingerprint(own.fingerprint, own.field, own.value))
            (summary,) = apply_splits(session, [(summary, job)])
        found.append(summary)
    return found


def lock_fingerprints(session: Session, fingerprints: Iterable[str]) -> None:
    """Locks fingerprints, always in the same order. Nobody else can change their groups until the transaction ends."""
    if names := [f"fingerprint {fingerprint}" for fingerprint in sorted(fingerprints)]:
        lock(session, *names)


def split_fingerprint(fingerprint: str, field: str, value: str) -> str:
    """Returns the fingerprint of the incidents that a split separated."""
    return f"{fingerprint} {field}={value}"


def final_group(session: Session, number: int) -> int:
    """Returns the group into which a group is merged, directly or indirectly; it contains the incidents."""
    while (above := session.connection().execute(_ABOVE, {"of": number}).scalar()) is not None:
        number = above
    return number


def create_group(
    session: Session, fingerprints: list[str], summary: VerdictSummary, seen: datetime, origin: Origin = Origin()
) -> int:
    """Creates a group with these fingerprints and returns its number."""
    row = GroupRow(
        status=GroupStatus.OPEN,
        count=1,
        signature=summary.signature,
        title=summary.title,
        entry=summary.entry,
        outcome=summary.outcome,
        first_seen=seen,
        last_seen=seen,
        gpu_hours=summary.gpu_hours,
        came_from=origin.came_from,
        provisional=origin.provisional,
    )
    session.add(row)
    session.flush()
    known = {"group_number": row.number, "knowledge": origin.knowledge}
    session.add_all(FingerprintRow(fingerprint=fingerprint, **known) for fingerprint in fingerprints)
    session.flush()
    return row.number


def _joining(costs: bool) -> Update:
    """Returns the statement that adds incidents to their group; `costs`: with known GPU hours."""
    first, last, back = (bindparam(name, type_=_GROUPS.c.last_seen.type) for name in ("first", "last", "back"))
    group = _GROUPS.c
    latest = last >= group.last_seen
    regressed = (group.status == GroupStatus.RESOLVED) & (group.resolved_at < last)
    changes: dict[str, Any] = {
        "count": group.count + bindparam("more", type_=Integer),
        "status": case((regressed, GroupStatus.OPEN), else_=group.status),
        "regressed_at": case((regressed, back), else_=group.regressed_at),
        "muted_until": case((regressed, null()), else_=group.muted_until),
        "first_seen": case((first < group.first_seen, first), else_=group.first_seen),
        "last_seen": case((latest, last), else_=group.last_seen),
    }
    for name in ("title", "signature", "entry", "outcome"):
        changes[name] = case((latest, bindparam(f"its_{name}", type_=Text)), else_=group[name])
    if costs:
        changes["gpu_hours"] = func.coalesce(group.gpu_hours, 0) + bindparam("its_hours", type_=Float)
    return update(_GROUPS).where(group.number == bindparam("of")).values(changes)


# Statements for every verdict, built once.
_GROUPS = cast(Table, GroupRow.__table__)
_RESOLVED_AT = case((_GROUPS.c.status == GroupStatus.RESOLVED, _GROUPS.c.resolved_at)).label("resolved_at")
_GROUPS_OF = (
    select(FingerprintRow.fingerprint, _GROUPS.c.number, _GROUPS.c.merged_into, _RESOLVED_AT)
    .join(FingerprintRow, FingerprintRow.group_number == _GROUPS.c.number)
    .where(FingerprintRow.fingerprint.in_(bindparam("these", expanding=True)))
)
_BEFORE = (
    select(func.min(FingerprintRow.group_number))
    .join(SuccessionRow, SuccessionRow.fingerprint == FingerprintRow.fingerprint)
    .where(SuccessionRow.successor == bindparam("of"))
)
_ABOVE = select(_GROUPS.c.merged_into).where(_GROUPS.c.number == bindparam("of"))
_JOIN = {costs: _joining(costs) for costs in (True, False)}
_RESOLVED = select(_RESOLVED_AT).where(_GROUPS.c.number == bindparam("of"))
_SPLITS = (
    select(SplitRow.fingerprint, SplitRow.field, SplitRow.value)
    .where(SplitRow.fingerprint.in_(bindparam("these", expanding=True)))
    .order_by(SplitRow.number)
)
