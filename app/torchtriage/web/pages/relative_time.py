"""How long ago something was, as people say it: a point in time in, a few words in their language out."""

from __future__ import annotations

from datetime import UTC, datetime

from torchtriage.domain.entry import Language
from torchtriage.lazy_regex import lazy_regex
from torchtriage.web.pages.translations import word

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_LONG_AGO = 30 * _DAY  # from there on the day says more
_ZONED = lazy_regex(r"T[\d:.]+(?:Z|[+-]\d\d:?\d\d)$")


def ago(lang: Language, at: datetime, now: datetime | None = None) -> str:
    """-> `4 min ago`, or `in 3 h` for what is to come; the day (UTC) where that is more than 30 days away."""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    far = abs(seconds)
    if far >= _LONG_AGO:
        return at.astimezone(UTC).strftime("%Y-%m-%d")
    if far < _MINUTE:
        return word(lang, "just_now")
    way = "ago" if seconds > 0 else "ahead"
    if far < _HOUR:
        return word(lang, f"minutes_{way}", count=int(far // _MINUTE))
    if far < _DAY:
        return word(lang, f"hours_{way}", count=int(far // _HOUR))
    return word(lang, f"days_{way}", count=int(far // _DAY))


def zoned(time: str | None) -> bool:
    """-> whether a time that a log tells has its zone, so that it can be told in another."""
    return bool(time and _ZONED.search(time))
