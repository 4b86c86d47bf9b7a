"""Describes the result of a back-test as rows of a page: incidents of the same message and verdict share a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchtriage.domain.back_test import BackTest, BackTestStage, ShownIn
from torchtriage.web.pages.list_items import IncidentItem


@dataclass(frozen=True, slots=True)
class BackTestRow:
    """Incidents in which the same happened and whose verdict today is the same; the latest is first. `item` is the
    latest that still exists."""

    incidents: tuple[ShownIn, ...]
    item: IncidentItem | None

    @property
    def today(self) -> ShownIn:
        return self.incidents[0]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a back-test comes to, in a sentence: `key` names its words, `look` how the page shows it."""

    key: str
    look: str
    count: int = 0


def finding(test: BackTest, adds: bool) -> Finding | None:
    """Returns None if the back-test has not ended. `adds`: the draft adds a case to an entry."""
    if test.stage in (BackTestStage.NONE, BackTestStage.RUNNING):
        return None
    alarms, better = test.counts.get("alarms", 0), test.counts.get("refines", 0)
    others = test.counts.get("takes", 0) + test.counts.get("overrides", 0)
    if alarms:
        return Finding("finding_alarms", "failed", alarms)
    if others:
        return Finding("finding_others", "unexplained", others)
    if adds and better:
        return Finding("finding_refines", "healthy", better)
    if explained := test.counts.get("explains", 0):
        return Finding("finding_explains", "healthy", explained)
    return Finding("finding_beside" if test.counts.get("beside") else "finding_nothing", "")


def back_test_rows(found: Iterable[ShownIn], items: Mapping[str, IncidentItem]) -> tuple[BackTestRow, ...]:
    """Returns the rows, the one with the latest incident first."""
    alike: dict[object, list[ShownIn]] = {}
    for shown in sorted(found, key=lambda shown: -int(shown.incident_id)):
        item = items.get(shown.incident_id)
        what = (item.says or item.detail or item.title) if item else shown.incident_id
        alike.setdefault((what, shown.outcome, shown.entry, shown.case), []).append(shown)
    return tuple(BackTestRow(tuple(same), items.get(same[0].incident_id)) for same in alike.values())
