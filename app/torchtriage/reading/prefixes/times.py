"""Finds times in lines, in the forms of loggers, schedulers and `date`, and converts them to ISO 8601.

A time without a year, as in syslog and glog, begins with `--`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from torchtriage.lazy_regex import lazy_regex

STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
SYSLOG = rf"{_MONTH} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
CTIME = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {SYSLOG} (?:[A-Z]{{3,5}} )?\d{{4}}"
_FAR = 120  # characters in which a line has its time
_DATE = 16  # most characters of a date before the clock time
_LONG_DATE = 11  # the same for the form of most loggers, before which no other can begin
_STAMP = lazy_regex(STAMP)
_DAY = r"(?:[01]\d)[/-][0-3]\d \d\d:\d\d:\d\d"
_IN_TEXT = lazy_regex(
    rf"(?P<stamp>{STAMP})"
    r"|[WEIF](?P<month>\d\d?)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d+)"  # glog, torch >= 2.2
    # torchelastic's report and others
    r"|(?P<slashes>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?|\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"
    r"|(?P<american>[01]\d/[0-3]\d/\d{4} \d\d:\d\d:\d\d)"  # scripts of transformers
    rf"|(?P<ctime>{CTIME})"  # date, nvidia-smi
    rf"|(?:^\[?|(?<=^\[))(?P<brief>{_DAY})(?= - mm| d2\.|\s?\])"  # mmengine, detectron2
)
_SYSLOG_PARTS = lazy_regex(rf"({_MONTH}) ([ \d]\d) ([\d:.]+)(?: (?:[A-Z]{{3,5}} )?(\d{{4}}))?$")


def time_in(text: str) -> str | None:
    """Returns the first time near the beginning of a text, as ISO 8601, or None."""
    clock = _clock(text)
    if stamp := _stamp_at(text, clock):
        return with_iso_marks(stamp[0])
    found = _IN_TEXT.search(text, max(clock - _DATE, 0), _FAR) if clock >= 0 else None
    if found is None or found.lastgroup is None:
        return None
    if found.lastgroup == "clock":
        return f"--{int(found['month']):02}-{found['day']}T{found['clock']}"
    time = found[found.lastgroup]
    return f"{time[6:10]}-{time[:2]}-{time[3:5]}T{time[11:]}" if found.lastgroup == "american" else iso(time)


def stamp_in(text: str) -> slice | None:
    """Returns the place of the first time near the beginning of a text, if it has the form of most loggers, else
    None."""
    stamp = _stamp_at(text, _clock(text))
    return slice(*stamp.span()) if stamp else None


def _stamp_at(text: str, clock: int) -> re.Match[str] | None:
    return _STAMP.match(text, clock - _LONG_DATE, _FAR) if clock >= _LONG_DATE else None


def _clock(text: str) -> int:
    """Returns the place of the first hours and minutes, as in 09:10:00, or -1. Most lines have none, and the regex
    takes fifty times as long to decide that."""
    at = text.find(":", 2, _FAR)
    while at >= 0:
        if text[at + 3 : at + 4] == ":" and text[at - 2 : at].isdecimal() and text[at + 1 : at + 3].isdecimal():
            return at - 2
        at = text.find(":", at + 1, _FAR)
    return -1


def iso(time: str) -> str:
    """Returns a time in one of the forms above, or in seconds or milliseconds since 1970, as ISO 8601."""
    if time[:1].isdigit() and time[2:3] not in "/-":
        return with_iso_marks(time) if time[4:5] in "-/" else _since_1970(time)
    if time[:1].isdigit():
        return f"--{with_iso_marks(time)}"
    parts = _SYSLOG_PARTS.search(time)
    if parts is None:
        return time
    month, day, clock, year = parts.groups()
    return f"{year or '-'}-{_MONTHS.index(month) + 1:02}-{int(day):02}T{clock}"


def with_iso_marks(time: str) -> str:
    """Returns a time with the separators of ISO 8601. (str.translate would take four times as long.)"""
    return time.replace(" ", "T").replace("_", "T").replace("/", "-").replace(",", ".")


def with_year(time: str, other: str | None) -> str:
    """Returns the time. If it has no year, adds that of `other`."""
    return f"{other[:4]}{time[1:]}" if time[:1] == "-" and other and other[:4].isdecimal() else time


def moment(time: str) -> datetime:
    """Returns a datetime for comparison. A time without a year gets 2024, because any leap year will do. Raises
    ValueError for an invalid date."""
    return datetime.fromisoformat(f"2024{time[1:]}" if time[:2] == "--" else time)


def seconds_between(first: str | None, last: str | None) -> float | None:
    """Returns the seconds from one time to another. None if they cannot be compared: only one of them has a year or an
    offset from UTC, or one is invalid."""
    if first is None or last is None or first[:1] != last[:1]:
        return None
    try:
        return (moment(last) - moment(first)).total_seconds()
    except (ValueError, TypeError):  # TypeError if only one has an offset
        return None


def iso_time(seconds: float) -> str:
    """Returns seconds since 1970 as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _since_1970(number: str) -> str:
    seconds = float(number)
    return iso_time(seconds / 1000 if seconds > 1e11 else seconds)
