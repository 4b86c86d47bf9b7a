"""Which group the incident of a verdict belongs to: by its fingerprint, and by what people merged and split, which
`grouping` keeps. Each function is one step of a transaction that its caller opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import BindParameter, Float, Table, Text, Update, bindparam, case, func, null, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.access import Change
from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import Finding, Job
from torchtriage.storage import audit_log
from torchtriage.storage.database import lock
from torchtriage.storage.tables import FingerprintRow, GroupRow, SplitRow, SuccessionRow

BY_ITSELF = "torchtriage"  # in the trail


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of a group as it is made: the knowledge of its first verdict, the group that its incident was in
    before, and whether it may turn out to be an older group under a new fingerprint."""

    knowledge: str | None = None
    came_from: int | None = None
    provisional: bool = False


def join(session: Session, fingerprint: str, finding: Finding, seen: datetime, origin: Origin) -> int:
    """Counts one more incident to the group of a fingerprint, which is made where there is none -> its number.

    A resolved group is open again, and no longer muted, where the incident is younger than the decision; the trail
    tells of that.
    """
    hold(session, [fingerprint])
    connection = session.connection()
    own = connection.execute(_GROUP_OF, {"of": fingerprint}).one_or_none()
    if own is None:
        came_from = origin.came_from or connection.execute(_BEFORE, {"of": fingerprint}).scalar()
        origin = replace(origin, came_from=came_from, provisional=origin.provisional and came_from is None)
        return make(session, [fingerprint], finding, seen, origin)
    number: int = own.number
    resolved_at = own.resolved_at
    if own.merged_into is not None:
        number = root_of(session, own.merged_into)
        resolved_at = connection.execute(_RESOLVED, {"of": number}).scalar()
    told = {
        "of": number,
        "seen": seen,
        "its_title": finding.title,
        "its_signature": finding.signature,
        "its_entry": finding.entry,
        "its_outcome": finding.outcome,
        "its_hours": finding.gpu_hours,
    }
    connection.execute(_JOIN[finding.gpu_hours is not None], told)
    if resolved_at is not None and resolved_at < seen:
        tell_regress(session, number)
    return number


def tell_regress(session: Session, number: int) -> None:
    """Writes into the trail that a resolved group is open again."""
    detail = {"before": {"status": GroupStatus.RESOLVED.value}, "after": {"status": GroupStatus.OPEN.value}}
    audit_log.add(session, Change(datetime.now(UTC), BY_ITSELF, "regress", f"group {number}", detail))


def told_apart(session: Session, finding: Finding, job: Job) -> Finding:
    """-> the finding with the fingerprint that it has after what people split."""
    values = {"cluster": job.cluster, "user": job.user, "host": finding.host}
    for rule in session.connection().execute(_SPLITS, {"of": finding.fingerprint}):
        if values[rule.field] == rule.value:
            own = apart(rule.fingerprint, rule.field, rule.value)
            return told_apart(session, replace(finding, fingerprint=own), job)
    return finding


def hold(session: Session, fingerprints: Iterable[str]) -> None:
    """Holds fingerprints, in an order that is the same for everyone: nobody else changes their groups meanwhile."""
    for fingerprint in sorted(fingerprints):
        lock(session, f"fingerprint {fingerprint}")


def apart(fingerprint: str, field: str, value: str) -> str:
    """-> the fingerprint of those incidents that a split gave a group of their own."""
    return f"{fingerprint} {field}={value}"


def root_of(session: Session, number: int) -> int:
    """-> the group that a group is merged into, if it is: where its incidents are."""
    while (above := session.connection().execute(_ABOVE, {"of": number}).scalar()) is not None:
        number = above
    return number


def make(session: Session, fingerprints: list[str], finding: Finding, seen: datetime, origin: Origin = Origin()) -> int:
    """-> the number of a new group, which these fingerprints lead to."""
    row = GroupRow(
        status=GroupStatus.OPEN,
        count=1,
        signature=finding.signature,
        title=finding.title,
        entry=finding.entry,
        outcome=finding.outcome,
        first_seen=seen,
        last_seen=seen,
        gpu_hours=finding.gpu_hours,
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
    """-> what one more incident, with or without a known cost, changes of its group."""
    seen: BindParameter[datetime] = bindparam("seen", type_=_GROUPS.c.last_seen.type)
    group = _GROUPS.c
    latest = seen >= group.last_seen
    regressed = (group.status == GroupStatus.RESOLVED) & (group.resolved_at < seen)
    changes: dict[str, Any] = {
        "count": group.count + 1,
        "status": case((regressed, GroupStatus.OPEN), else_=group.status),
        "regressed_at": case((regressed, seen), else_=group.regressed_at),
        "muted_until": case((regressed, null()), else_=group.muted_until),
        "first_seen": case((seen < group.first_seen, seen), else_=group.first_seen),
        "last_seen": case((latest, seen), else_=group.last_seen),
    }
    for name in ("title", "signature", "entry", "outcome"):
        changes[name] = case((latest, bindparam(f"its_{name}", type_=Text)), else_=group[name])
    if costs:
        changes["gpu_hours"] = func.coalesce(group.gpu_hours, 0) + bindparam("its_hours", type_=Float)
    return update(_GROUPS).where(group.number == bindparam("of")).values(changes)


# What is asked and written for every verdict, made once.
_GROUPS = cast(Table, GroupRow.__table__)
_RESOLVED_AT = case((_GROUPS.c.status == GroupStatus.RESOLVED, _GROUPS.c.resolved_at)).label("resolved_at")
_GROUP_OF = (
    select(_GROUPS.c.number, _GROUPS.c.merged_into, _RESOLVED_AT)
    .join(FingerprintRow, FingerprintRow.group_number == _GROUPS.c.number)
    .where(FingerprintRow.fingerprint == bindparam("of"))
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
    .where(SplitRow.fingerprint == bindparam("of"))
    .order_by(SplitRow.number)
)
