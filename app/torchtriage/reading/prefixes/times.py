"""The times in lines, in the forms of loggers, schedulers and `date`: text in, ISO 8601 out.

A time without a year, as of syslog and glog, begins with `--`.
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
_FAR = 120  # characters in which a line says its time
_DATE = 16  # characters of a date before the clock, at most
_LONG_DATE = 11  # and of the one that most loggers write, before which no other can begin
_STAMP = lazy_regex(STAMP)
_DAY = r"(?:[01]\d)[/-][0-3]\d \d\d:\d\d:\d\d"
_IN_TEXT = lazy_regex(
    rf"(?P<stamp>{STAMP})"
    r"|[WEIF](?P<month>\d\d?)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d+)"  # glog, torch >= 2.2
    r"|(?P<slashes>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?|\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"  # torchelastic's report and others
    r"|(?P<american>[01]\d/[0-3]\d/\d{4} \d\d:\d\d:\d\d)"  # scripts of transformers
    rf"|(?P<ctime>{CTIME})"  # date, nvidia-smi
    rf"|(?:^\[?|(?<=^\[))(?P<brief>{_DAY})(?= - mm| d2\.|\s?\])"  # mmengine, detectron2
)
_SYSLOG_PARTS = lazy_regex(rf"({_MONTH}) ([ \d]\d) ([\d:.]+)(?: (?:[A-Z]{{3,5}} )?(\d{{4}}))?$")


def time_in(text: str) -> str | None:
    """-> the first time in the beginning of a text, as ISO 8601."""
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
    """-> where the first time is in the beginning of a text, if it is of the form that most loggers write."""
    stamp = _stamp_at(text, _clock(text))
    return slice(*stamp.span()) if stamp else None


def _stamp_at(text: str, clock: int) -> re.Match[str] | None:
    return _STAMP.match(text, clock - _LONG_DATE, _FAR) if clock >= _LONG_DATE else None


def _clock(text: str) -> int:
    """-> where the first hours and minutes stand, as in 09:10:00, or -1. Most lines have none, and the regex takes
    fifty times as long to say so."""
    at = text.find(":", 2, _FAR)
    while at >= 0:
        if text[at + 3 : at + 4] == ":" and text[at - 2 : at].isdecimal() and text[at + 1 : at + 3].isdecimal():
            return at - 2
        at = text.find(":", at + 1, _FAR)
    return -1


def iso(time: str) -> str:
    """-> one of the forms above, or seconds or thousandths since 1970, as ISO 8601."""
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
    """-> a time with the marks of ISO 8601. Most lines have one; str.translate takes four times as long."""
    return time.replace(" ", "T").replace("_", "T").replace("/", "-").replace(",", ".")


def with_year(time: str, other: str | None) -> str:
    """-> the time, with the year of another one where it has none itself."""
    return f"{other[:4]}{time[1:]}" if time[:1] == "-" and other and other[:4].isdecimal() else time


def moment(time: str) -> datetime:
    """-> a time of these, for comparing; one without a year as of 2024, since any leap year will do. Raises ValueError
    where it is no date."""
    return datetime.fromisoformat(f"2024{time[1:]}" if time[:2] == "--" else time)


def seconds_between(first: str | None, last: str | None) -> float | None:
    """-> seconds from one time to another; None where they can't be compared: one of them alone has a year or an
    offset from UTC, or is none."""
    if first is None or last is None or first[:1] != last[:1]:
        return None
    try:
        return (moment(last) - moment(first)).total_seconds()
    except (ValueError, TypeError):  # TypeError: one has an offset and the other has none.
        return None


def iso_time(seconds: float) -> str:
    """-> seconds since 1970 as ISO 8601, in UTC."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def _since_1970(number: str) -> str:
    seconds = float(number)
    return iso_time(seconds / 1000 if seconds > 1e11 else seconds)
