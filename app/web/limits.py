"""How often one caller may ask."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from app.domain.access import ANYONE, Caller
from app.errors import BadInput


class TooMany(BadInput):
    """The caller asked more often than the settings allow."""

    status = 429
    code = "too_many_requests"


class RateLimit:
    """Counts requests by token, or by address where there is no login. None counts nothing."""

    def __init__(self, allowed: RateLimitItem | None) -> None:
        self._allowed = allowed
        self._window = MovingWindowRateLimiter(MemoryStorage())

    def count(self, caller: Caller, address: str) -> None:
        """Raises TooMany, with the seconds to wait in `detail`."""
        if self._allowed is None:
            return
        who = address if caller is ANYONE else caller.name
        if not self._window.hit(self._allowed, who):
            free_at = self._window.get_window_stats(self._allowed, who).reset_time
            wait = max(1, math.ceil(free_at - time.time()))
            raise TooMany(f"more than {self._allowed} from {who}; wait {wait} s", retry_after=wait)
