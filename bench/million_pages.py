"""The requests for a database of a million incidents: every page, period, cluster and filter that the pages offer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from bench.many_incidents import CLUSTERS

RANGES = {"24 h": 1, "7 d": 7, "30 d": 30, "90 d": 90, "1 y": 365}
_WORDS = {
    "a word of most": "error",
    "a word of some": "cuda",
    "two words": "cuda error",
    "Chinese": "显存",
    "a beginning": "e",
    "a user": "user299",
    "words that exclude one another": "blue-gpu-0003 tokyo",
    "nothing": "zzzqq",
}


def asked(entry: str, group: int) -> Iterator[tuple[str, str, str]]:
    """Yields (page, period, address). `entry` is the most frequent entry, `group` the largest group."""
    today = datetime.now(UTC).date()
    yield from _counted("dashboard", "/dashboard", today, {})
    yield from _counted("hosts", "/hosts", today, {"of one beginning": {"host": "blue-gpu-00"}})
    yield from _lists(today, entry, group)
    for name, words in _WORDS.items():
        yield from _ranged(f"search, {name}", "/incidents", {"q": words}, today)
        yield (
            f"search, {name}, a cluster and a user",
            "",
            _address("/incidents", q=words, cluster="tokyo", user="user042"),
        )
    for sort in ("last_seen", "count", "cost"):
        for status in ("", "open", "ignored"):
            yield f"groups by {sort}, {status or 'all'}", "", _address("/groups", sort=sort, status=status)
        yield f"groups of an entry by {sort}", "", _address("/groups", sort=sort, entry=entry)
        yield f"unexplained by {sort}", "", _address("/unexplained", sort=sort)
    yield "group, the greatest", "", f"/groups/{group}"
    yield "host, the worst", "1 y", "/hosts/blue-gpu-0000"
    yield "entry, the commonest", "30 d", f"/knowledge/{entry}"
    for by in ("entry", "cluster", "host", "user"):
        yield from _ranged(f"API, stats by {by}", "/api/v1/stats", {"by": by}, today)
    yield "API, incidents", "", "/api/v1/incidents"
    yield "API, hosts", "30 d", "/api/v1/hosts?limit=1000&" + urlencode({"since": today - timedelta(days=29)})


def _counted(name: str, path: str, today: date, more: dict[str, dict[str, str]]) -> Iterator[tuple[str, str, str]]:
    kinds = {"": {}, **{f"of {cluster}": {"cluster": cluster} for cluster in CLUSTERS}, **more}
    for kind, query in kinds.items():
        for time, days in RANGES.items():
            within = {"since": str(today), "until": str(today)} if days == 1 else {"days": str(days)}
            yield f"{name} {kind}".strip(), time, _address(path, **within, **query)
    # As many days at both ends as possible.
    yield (
        f"{name}, ends within months",
        "1 y",
        _address(path, since=f"{today.year - 1}-01-02", until=f"{today.year}-10-30"),
    )


def _lists(today: date, entry: str, group: int) -> Iterator[tuple[str, str, str]]:
    single = {
        "all": {},
        "one entry": {"entry": entry},
        "one host": {"host": "blue-gpu-0003"},
        "one user": {"user": "user007"},
        "one cluster": {"cluster": "tokyo"},
        "unexplained": {"outcome": "unexplained"},
        "failed": {"state": "failed"},
        "one group": {"group": str(group)},
    }
    for name, query in single.items():
        yield from _ranged(f"list, {name}", "/incidents", query, today)
    several = {
        "outcome, user and cluster": {"outcome": "explained", "user": "user007", "cluster": "tokyo"},
        "entry on a host": {"entry": entry, "host": "green-gpu-0001"},
        "entry and user": {"entry": entry, "user": "user298"},
        "an entry that is unexplained": {"entry": entry, "outcome": "unexplained"},
        "a host of another cluster": {"cluster": "tokyo", "host": "blue-gpu-0003"},
        "a cluster's group": {"cluster": "tokyo", "group": str(group)},
        "nobody": {"user": "nobody", "outcome": "explained"},
        "all filters": {"entry": entry, "outcome": "explained", "state": "triaged", "cluster": "blue", "user": "user001",
                        "host": "blue-gpu-0003", "group": str(group)},
    }  # fmt: skip
    for name, query in several.items():
        yield f"list, {name}", "", _address("/incidents", **query)
    day = str(today - timedelta(days=200))
    yield "list, a day half a year ago", "24 h", _address("/incidents", since=day, until=day)
    yield "list, an entry half a year ago", "24 h", _address("/incidents", since=day, until=day, entry=entry)


def _ranged(name: str, path: str, query: dict[str, str], today: date) -> Iterator[tuple[str, str, str]]:
    times = {time: {"since": str(today - timedelta(days=days - 1))} for time, days in RANGES.items()} | {"": {}}
    for time, within in times.items():
        yield name, time, _address(path, **query, **within)


def _address(path: str, **query: str) -> str:
    return f"{path}?{urlencode({name: value for name, value in query.items() if value})}"
