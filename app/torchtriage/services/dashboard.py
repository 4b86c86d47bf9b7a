"""Builds the charts and tables of the dashboard for a range of days and a cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice

from sqlalchemy.orm import Session

from torchtriage.domain.dashboard import OTHERS, UNKNOWN, Before, Chart, ClusterRecord, Cost, Dashboard, Range
from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.domain.stats import HostFailures, StatsFilter, Total, UnlikelyHost
from torchtriage.domain.verdict import FAILED
from torchtriage.services.probability import hit_by_chance
from torchtriage.services.service import Service
from torchtriage.storage import dashboard as stored
from torchtriage.storage import hosts

_DAYS_BY_DAY = 92  # a longer range is drawn by month
_PARTS, _MAX_PARTS = 8, 12  # parts that a chart shows; up to _MAX_PARTS while "others" would be the largest part
_CAUSES, _HOSTS, _JUDGED, _RETRIES = 15, 20, 15, 1000
_UNEVEN = 60  # maximum hosts that are tested for more failures than chance explains
_MIN_FAILURES, _CHANCE = 3, 0.01  # a host is listed from this many failures on, and up to this probability by chance


def dashboard(service: Service, wanted: Range, cluster: str | None = None) -> Dashboard:
    """Returns all that the page shows. Logs without a failure count only for the success of retries."""
    within = StatsFilter(_start(wanted.first), _start(wanted.last + timedelta(days=1)), cluster)
    by_day = wanted.days <= _DAYS_BY_DAY
    with service.database.reading() as session:
        over_time = stored.over_time(session, wanted, cluster, "day" if by_day else "month")
        by_cluster = stored.by_cluster(session, wanted, cluster)
        first = stored.first_day(session)
        bad = hosts.bad(session, within, _HOSTS)
        uneven, compared = hosts.uneven(session, within, _MIN_FAILURES, _UNEVEN)
        before = _before(session, wanted, cluster, first)
        retries = stored.retry_success(session, within, _RETRIES)
        precision = stored.precision(session, within, _JUDGED)
    times = tuple(_days(wanted)) if by_day else tuple(_months(wanted))
    failed = [total for total in by_cluster if total.outcome in FAILED]
    hours = _hours(wanted, first, datetime.now(UTC))
    return Dashboard(
        range=wanted,
        cluster=cluster,
        hours=hours,
        count=sum(total.count for total in failed),
        gpu_hours_lost=round(sum(total.gpu_hours for total in failed), 1),
        by_area=_chart(times, over_time, _area),
        by_owner=_chart(times, over_time, lambda entry: _owner(entry, service.knowledge)),
        causes=_costs(failed)[:_CAUSES],
        clusters=_clusters(failed, hours, service.knowledge),
        bad_hosts=tuple(bad),
        retries=retries,
        precision=tuple(precision),
        before=before,
        unlikely_hosts=_unlikely(uneven, compared),
        compared=compared,
    )


def frequent_entries(service: Service, wanted: Range, most: int) -> tuple[tuple[Entry, int], ...]:
    """Returns the entries that explained the most failures in these days, each with its count."""
    with service.database.reading() as session:
        totals = stored.by_cluster(session, wanted, None)
    causes, entries = _causes(total for total in totals if total.outcome in FAILED), service.knowledge.entries
    named = ((entries[cause], count) for cause, count in causes.most_common() if cause in entries)
    return tuple(islice(named, most))


def _before(session: Session, wanted: Range, cluster: str | None, first: date | None) -> Before | None:
    """Returns the totals of the same number of days before the range. None if the first incident is not older than
    those days: a partial range cannot be compared with a whole one."""
    begin = wanted.first - timedelta(days=wanted.days)
    if first is None or begin < first:
        return None
    days = Range(begin, wanted.first - timedelta(days=1))
    failed = [total for total in stored.by_cluster(session, days, cluster) if total.outcome in FAILED]
    causes = _causes(failed)
    lost = round(sum(total.gpu_hours for total in failed), 1)
    return Before(days, causes.total(), lost, dict(causes))


def _causes(failed: Iterable[Total]) -> Counter[str | None]:
    """Returns how many failures each entry explains; the key None counts unexplained failures."""
    causes: Counter[str | None] = Counter()
    for total in failed:
        causes[total.entry] += total.count
    return causes


def unlikely_hosts(service: Service, wanted: Range, cluster: str | None) -> tuple[tuple[UnlikelyHost, ...], int]:
    """Returns the hosts that failed more often than chance explains, and the number of hosts compared."""
    within = StatsFilter(_start(wanted.first), _start(wanted.last + timedelta(days=1)), cluster)
    with service.database.reading() as session:
        uneven, compared = hosts.uneven(session, within, _MIN_FAILURES, _UNEVEN)
    return _unlikely(uneven, compared), compared


def _unlikely(uneven: list[HostFailures], compared: int) -> tuple[UnlikelyHost, ...]:
    found = [
        UnlikelyHost(one, min(1.0, hit_by_chance(one.count, one.of_cluster, 1 / one.hosts) * compared))
        for one in uneven
    ]
    return tuple(sorted((one for one in found if one.chance <= _CHANCE), key=lambda one: one.chance)[:_HOSTS])


def cluster_names(service: Service) -> list[str]:
    """Returns the names of all clusters that have verdicts, sorted."""
    with service.database.reading() as session:
        return stored.clusters(session)


def _start(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _days(wanted: Range) -> Iterator[str]:
    return ((wanted.first + timedelta(days=at)).isoformat() for at in range(wanted.days))


def _months(wanted: Range) -> Iterator[str]:
    year, month = wanted.first.year, wanted.first.month
    while (year, month) <= (wanted.last.year, wanted.last.month):
        yield f"{year:04}-{month:02}"
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)


def _hours(wanted: Range, first: date | None, now: datetime) -> float:
    begin = max(_start(wanted.first), _start(first)) if first else _start(wanted.first)
    end = min(_start(wanted.last + timedelta(days=1)), now)
    return max((end - begin).total_seconds() / 3600, 0.0)


def _area(entry: str | None) -> str:
    return entry.partition(".")[0] if entry else UNKNOWN


def _owner(entry: str | None, knowledge: KnowledgeBase) -> str:
    known = knowledge.entries.get(entry or "")
    return known.owner if known else UNKNOWN


def _chart(
    times: tuple[str, ...], failures: dict[str | None, dict[str, int]], part_of: Callable[[str | None], str]
) -> Chart:
    places = {at: place for place, at in enumerate(times)}
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(times))
    for entry, over_time in failures.items():
        row = counts[part_of(entry)]
        for at, count in over_time.items():
            row[places[at]] += count
    order = sorted(counts, key=lambda part: (-sum(counts[part]), part))
    kept = _kept([part for part in order if part != UNKNOWN], counts)
    rest = tuple(part for part in order if part != UNKNOWN and part not in kept)
    shown = {part: tuple(counts[part]) for part in order if part not in rest}
    if rest:
        shown[OTHERS] = tuple(map(sum, zip(*(counts[part] for part in rest), strict=True)))
    return Chart(times, shown, rest)


def _kept(order: list[str], counts: dict[str, list[int]]) -> list[str]:
    """Returns the parts that a chart shows: all if there are few, else so many that "others" is not the largest."""
    if len(order) <= _PARTS:
        return order
    sums = [sum(counts[part]) for part in order]
    fits = (at for at in range(_PARTS - 1, _MAX_PARTS) if sum(sums[at:]) <= sums[0])
    return order[: next(fits, _MAX_PARTS - 1)]


def _costs(failed: list[Total]) -> tuple[Cost, ...]:
    found: dict[str | None, list[Total]] = defaultdict(list)
    for total in failed:
        found[total.entry].append(total)
    costs = [
        Cost(entry, sum(total.count for total in totals), round(sum(total.gpu_hours for total in totals), 1))
        for entry, totals in found.items()
    ]
    return tuple(sorted(costs, key=lambda cost: (-cost.gpu_hours_lost, -cost.count, cost.name or "")))


def _clusters(failed: list[Total], hours: float, knowledge: KnowledgeBase) -> tuple[ClusterRecord, ...]:
    found: dict[str, list[Total]] = defaultdict(list)
    for total in failed:
        found[total.part].append(total)
    records = []
    for cluster, totals in found.items():
        count = sum(total.count for total in totals)
        hardware = sum(total.count for total in totals if _owner(total.entry, knowledge) == "hardware")
        lost = round(sum(total.gpu_hours for total in totals), 1)
        records.append(
            ClusterRecord(cluster or None, count, hardware, _between(hours, count), _between(hours, hardware), lost)
        )
    return tuple(sorted(records, key=lambda record: (-record.count, record.cluster or "")))


def _between(hours: float, count: int) -> float | None:
    return round(hours / count, 2) if count else None
