"""Says how long ago something was, in the reader's language."""

from __future__ import annotations

from datetime import UTC, datetime

from torchtriage.domain.entry import Language
from torchtriage.lazy_regex import lazy_regex
from torchtriage.web.pages.translations import word

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SHOW_DATE_AFTER = 30 * _DAY  # from there on the day says more
_ZONED = lazy_regex(r"T[\d:.]+(?:Z|[+-]\d\d:?\d\d)$")


def ago(lang: Language, at: datetime, now: datetime | None = None) -> str:
    """Returns `4 min ago`, or `in 3 h` for the future. If it is more than 30 days away, returns the day (UTC)."""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    far = abs(seconds)
    if far >= _SHOW_DATE_AFTER:
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
    """Returns whether a time in a log has a time zone, so that it can be converted."""
    return bool(time and _ZONED.search(time))
