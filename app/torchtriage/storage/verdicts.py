"""Verdicts in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import Table, bindparam, insert, select, update
from sqlalchemy.orm import Session

from torchtriage.causality import fingerprint
from torchtriage.domain.incident import Job, State, VerdictSummary
from torchtriage.domain.verdict import Verdict
from torchtriage.storage import daily_counts, full_text_search, group_assignment, group_merging, outbox, slack_state
from torchtriage.storage.incidents import OPEN, change, is_id
from torchtriage.storage.new_incidents import job_text
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import EarlierVerdictRow, FingerprintRow, IncidentRow
from torchtriage.storage.verdict_json import from_stored, to_stored

_ENDED = [State.TRIAGED, State.FAILED]


# Statements built once and without the ORM, which takes longer than the engine takes for a short log.
_INCIDENTS, _EARLIER = cast(Table, IncidentRow.__table__), cast(Table, EarlierVerdictRow.__table__)
_COUNTED = ("received_at", "cluster", "outcome", "entry", "host", "hardware", "gpu_hours")
_KNOWN = [_INCIDENTS.c[name] for name in ("number", "job", "fingerprint", "group_number", "log_sha256", *_COUNTED)]
_SET = update(_INCIDENTS).where(_INCIDENTS.c.number == bindparam("of"))
_REMEMBER = insert(_EARLIER).from_select(
    ["incident_number", "verdict", "triaged_at", "replaced_at"],
    select(
        _INCIDENTS.c.number,
        _INCIDENTS.c.verdict,
        _INCIDENTS.c.triaged_at,
        bindparam("now", type_=_EARLIER.c.replaced_at.type),
    ).where(_INCIDENTS.c.number == bindparam("of"), _INCIDENTS.c.verdict.is_not(None)),
)


@dataclass(frozen=True, slots=True)
class NewVerdict:
    """A verdict to store, its summary, and the job's id or None. `log` is the digest of the triaged log if a later
    report of the run can replace that log, else None."""

    incident_id: str
    verdict: Verdict
    summary: VerdictSummary
    job_id: str | None = None
    log: str | None = None


def save(session: Session, found: Sequence[NewVerdict], triaged_at: datetime, settled: bool = True) -> list[bool]:
    """Stores verdicts and puts the incidents into their groups. Returns whether each was stored: not if another process
    was faster or the incident was deleted.

    Unless `settled`, fingerprints are still being checked after an upgrade, so new groups are provisional.
    """
    first = {number_of(one.incident_id): one for one in reversed(found) if one.log is None}
    again = {number_of(one.incident_id): one for one in reversed(found) if one.log is not None}
    saved_again = {
        number
        for number, one in sorted(again.items())
        if replace(session, one.incident_id, one.verdict, one.summary, triaged_at, one.log, settled)
    }
    rows = {row.number: row for row in _found(session, _LOCKED, list(first), OPEN)}
    kept = [first[number] for number in rows]
    jobs = [Job(**row.job) for row in rows.values()]
    summaries = group_assignment.apply_splits(
        session, [(one.summary, job) for one, job in zip(kept, jobs, strict=True)]
    )
    saved = [_Saved(*each) for each in zip(rows.values(), jobs, (one.verdict for one in kept), summaries, strict=True)]
    grouped = [one for one in saved if one.summary.fingerprint]
    groups = group_assignment.join(session, [one.as_member(provisional=not settled) for one in grouped])
    group_of = {one.row.number: group for one, group in zip(grouped, groups, strict=True)}
    _set(session, [(one, group_of.get(one.row.number)) for one in saved], triaged_at)
    daily_counts.update_all(session, ((None, daily_counts.of(_after(one.row, one.summary))) for one in saved))
    done = {id(one) for number, one in first.items() if number in rows}
    done |= {id(one) for number, one in again.items() if number in saved_again}
    return [id(one) in done for one in found]


@dataclass(frozen=True, slots=True)
class _Saved:
    """An incident's old row and its new verdict."""

    row: Any
    job: Job
    verdict: Verdict
    summary: VerdictSummary

    def as_member(self, was: int | None = None, provisional: bool = False) -> group_assignment.NewMember:
        """Returns the new member for its group. `was` is the number of its former group, or None."""
        origin = group_assignment.Origin(
            knowledge_version(self.verdict.engine, self.verdict.knowledge), was, provisional
        )
        assert self.summary.fingerprint is not None
        return group_assignment.NewMember(self.summary.fingerprint, self.summary, self.row.received_at, origin)


def knowledge_version(engine: str, knowledge: str) -> str:
    """Returns a text that identifies the current engine, knowledge and fingerprint rules."""
    return f"{engine} {knowledge} {fingerprint.VERSION}"


def confirm(session: Session, incident_ids: list[str], knowledge: str) -> None:
    """Records that the current knowledge gives these incidents the same verdict."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    change(session, [IncidentRow.number.in_(numbers), IncidentRow.state.in_(_ENDED)], {"knowledge": knowledge})


def replace(
    session: Session,
    incident_id: str,
    verdict: Verdict,
    summary: VerdictSummary,
    now: datetime,
    log: str | None = None,
    settled: bool = True,
) -> bool:
    """Stores a verdict in place of one from other knowledge, which is kept in the history. Returns False if there is
    nothing to replace.

    With `log`, the incident must wait for a verdict and its log must have this digest; it may have had a verdict as a
    provisional report. `settled` is as in `save`.
    """
    number, states = number_of(incident_id), _ENDED if log is None else OPEN
    before = next(iter(_found(session, _KNOWN_IN, [number], states)), None)
    if before is None:
        return False
    job = Job(**before.job)
    (summary,) = group_assignment.apply_splits(session, [(summary, job)])
    if summary.fingerprint != before.fingerprint:
        group_merging.lock_before_leaving(
            session, before.group_number, [summary.fingerprint] if summary.fingerprint else []
        )
    row = next(iter(_found(session, _LOCKED, [number], states)), None)
    if row is None or log not in (None, row.log_sha256):
        return False
    saved = _Saved(row, job, verdict, summary)
    session.connection().execute(_REMEMBER, {"of": row.number, "now": now})
    group = row.group_number
    if summary.fingerprint != row.fingerprint:
        was = session.get(FingerprintRow, row.fingerprint) if row.fingerprint else None
        group = None
        if summary.fingerprint:
            (group,) = group_assignment.join(session, [saved.as_member(was.group_number if was else None, not settled)])
    _set(session, [(saved, group)], now)
    if log is not None and group not in (None, row.group_number) and _is_empty(session, row.group_number):
        slack_state.move_threads(session, row.number, row.group_number, group)  # people were alerted about this run
        outbox.move(session, row.number, group)
    if summary.fingerprint != row.fingerprint and row.group_number is not None:
        # The incident may still be there: through another fingerprint of the group, or a merge.
        group_merging.leave(session, row.group_number, group if isinstance(group, int) else None)
    daily_counts.update(session, daily_counts.of(row), daily_counts.of(_after(row, summary)))
    return True


def _is_empty(session: Session, group: int | None) -> bool:
    """Returns whether a group exists and has no incidents."""
    own = select(IncidentRow.number).where(IncidentRow.group_number == group).limit(1)
    return group is not None and session.execute(own).scalar() is None


def earlier(session: Session, incident_id: str) -> list[Verdict]:
    """Returns the replaced verdicts, newest first. Raises DamagedJson."""
    query = select(EarlierVerdictRow.verdict).where(EarlierVerdictRow.incident_number == number_of(incident_id))
    stored = session.execute(query.order_by(EarlierVerdictRow.number.desc())).scalars()
    return [from_stored(verdict) for verdict in stored]


def save_failure(session: Session, incident_id: str, failure: str, at: datetime) -> bool:
    """Stores why an incident could not be triaged. Returns False if another process was faster or the incident was
    deleted."""
    changes = {"state": State.FAILED, "failure": failure, "triaged_at": at}
    return change(session, [is_id(incident_id), IncidentRow.state.in_(OPEN)], changes)


# Locks the rows until the transaction ends.
_KNOWN_IN = select(*_KNOWN).where(
    _INCIDENTS.c.number.in_(bindparam("these", expanding=True)),
    _INCIDENTS.c.state.in_(bindparam("states", expanding=True)),
)
_LOCKED = _KNOWN_IN.order_by(_INCIDENTS.c.number).with_for_update()


def _found(session: Session, query: Any, numbers: list[int], states: list[State]) -> Sequence[Any]:
    """Returns the known columns of those incidents that are in one of these states."""
    return session.connection().execute(query, {"these": numbers, "states": states}).all()


def _set(session: Session, saved: Sequence[tuple[_Saved, int | None]], at: datetime) -> None:
    """Writes each verdict and its group number to its incident."""
    if not saved:
        return
    columns = [
        {
            "of": one.row.number,
            "state": State.TRIAGED,
            "triaged_at": at,
            "failure": None,
            "verdict": to_stored(one.verdict),
            "outcome": one.summary.outcome,
            "entry": one.summary.entry,
            "case": one.summary.case,
            "host": one.summary.host,
            "hardware": one.summary.hardware,
            "gpu_hours": one.summary.gpu_hours,
            "advice": one.verdict.action.advice,
            "knowledge": knowledge_version(one.verdict.engine, one.verdict.knowledge),
            "fingerprint": one.summary.fingerprint,
            "group_number": group,
        }
        for one, group in saved
    ]
    session.connection().execute(_SET, columns)
    full_text_search.replace(session, {one.row.number: f"{job_text(one.job)}\n{one.summary.text}" for one, _ in saved})


def _after(row: Any, summary: VerdictSummary) -> Any:
    """Returns what the counts need of an incident with its new verdict."""
    counted = {name: getattr(summary, name) for name in ("outcome", "entry", "host", "hardware", "gpu_hours")}
    return SimpleNamespace(received_at=row.received_at, cluster=row.cluster, **counted)
