"""A run that stands still: behind its last step only a monitor prints; the end of a file in, the event out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import Line, Position
from torchtriage.matching.masking import mask_all
from torchtriage.reading.prefixes.times import seconds_between

_LEAST = 3600.0  # seconds of silence; evaluations and saving checkpoints take less
_BEATS = 3  # times that a monitor says the same
_MOST_FORMS = 3  # of a monitor's lines


def standstill(tail: Sequence[Line], progress: Collection[Position]) -> Event | None:
    """-> the event of a run whose last step is followed by nothing but a monitor's lines, again and again for an hour
    or more. `tail` is the end of a file, `progress` holds the positions of the lines that show steps."""
    since = max((position for position in progress if position <= tail[-1].position), default=None) if tail else None
    if since is None or since < tail[0].position:
        return None
    beats = [line for line in tail if line.position > since and any(map(str.isalpha, line.text))]
    forms = Counter(mask_all(line.text) for line in beats)
    if not forms or len(forms) > _MOST_FORMS or min(forms.values()) < _BEATS:
        return None
    seconds = seconds_between(beats[0].time, beats[-1].time)
    if seconds is None or seconds < _LEAST:
        return None
    return Event.at(beats[-1], f"no progress for {seconds:.0f} s", EventSource.HANG)
