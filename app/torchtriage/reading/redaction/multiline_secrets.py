"""Follows what goes on over lines: the body of a private key, and the block of YAML that holds a secret's value.

Only lines that look like such a body are taken, under whatever stands before all lines; what other ranks print between
stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchtriage.reading.redaction.secret_patterns import KEY_ENDS
from torchtriage.reading.redaction.secret_values import drawn_by_lot, is_secret

_Span = tuple[int, int, str]
_PATIENCE = 1000  # lines without a part of the body, after which it is over
_MOST = 16  # bodies at once
_DIGITS = bytes.maketrans(b"0123456789", b"0000000000")  # times and ranks differ from line to line
_ENDS = re.compile(KEY_ENDS.encode())
_BEGIN = b"-----BEGIN "
# A line of a body, and whether nothing stands behind it.
_BODY = re.compile(rb"[ \t\"'|>*#]{0,40}([A-Za-z0-9+/]+={0,3})((?:\\+[nr])*[\"', |\r]*$)?")
_RUN = re.compile(rb"[A-Za-z0-9+/=]{24,}")
_LAST_RUN = re.compile(rb"([A-Za-z0-9+/]{60,80}={0,2})((?:\\+n)?[\"',]{0,3})$")
_FULL = 40  # characters of a line of a key's body; the last one is shorter


@dataclass(slots=True)
class _Body:
    """What was begun. `prefix`: what its lines begin with, its digits as zeros. `key`: a private key, else a block of YAML."""

    prefix: bytes
    key: bool
    left: int = _PATIENCE
    full: bool = False  # a whole line of it was seen, so that a shorter one may be its last


class Following:
    """What was begun and has not ended. True while there is something."""

    def __init__(self) -> None:
        self._bodies: list[_Body] = []

    def __bool__(self) -> bool:
        return bool(self._bodies)

    def spans(self, data: bytes, begins: list[tuple[int, bool]]) -> Iterator[_Span]:
        """Yields (first byte, byte after, kind) of what is secret in `data`. `begins`: where something begins, up to the byte
        after its sign, and whether it is a key; what goes on beyond `data` is found in what comes next."""
        waiting = iter(begins)
        begin = next(waiting, None)
        at = 0
        while at < len(data):
            if not self._bodies:
                if begin is None:
                    return
                at = data.rfind(b"\n", 0, begin[0] - 1) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            line = data[at:end]
            if self._bodies:
                for start, length, kind in self._parts(line):
                    yield at + start, at + start + length, kind
            while begin is not None and begin[0] <= end + 1:
                if begin[1]:
                    yield from self._key(data, at, begin[0], end)
                else:
                    self._open(_Body(_indented(line), False, left=20))
                begin = next(waiting, None)
            at = end + 1

    def _open(self, body: _Body) -> None:
        others = [one for one in self._bodies if one.prefix != body.prefix]
        self._bodies = [*others[1 - _MOST :], body]

    def _key(self, data: bytes, line: int, at: int, end: int) -> Iterator[_Span]:
        """Yields what stands of a key in the line of its begin; opens its body where it does not end there."""
        dashes = data.find(b"-----", at, end)
        ends = dashes >= 0 and _ENDS.match(data, dashes, end) is not None
        runs = [run for run in _RUN.finditer(data, at, dashes if dashes >= 0 else end) if drawn_by_lot(run[0])]
        if runs:
            yield (at, dashes, "private-key") if ends else (runs[0].start(), runs[-1].end(), "private-key")
        if not ends:
            self._open(_Body(data[line : data.rfind(_BEGIN, line, at)].translate(_DIGITS), True))

    def _parts(self, line: bytes) -> Iterator[_Span]:
        """Yields (start, length, kind) of what a line holds of what was begun, and forgets what has ended."""
        plain = line.translate(_DIGITS)
        ends = b"-----END " in line and _ENDS.search(line) is not None
        found: _Span | None = None
        for body in self._bodies:
            body.left -= 1
            mine = plain.startswith(body.prefix)
            if body.key and ends and mine:
                body.left = 0
            elif found is None:
                found = _key_part(body, line, mine) if body.key else _block_part(body, line, mine)
        self._bodies = [body for body in self._bodies if body.left > 0]
        if found:
            yield found


def _key_part(body: _Body, line: bytes, mine: bool) -> _Span | None:
    """-> what a line holds of a key. `mine`: it begins as the line did in which the key began."""
    run = _BODY.match(line, len(body.prefix)) if mine else None
    if run is None:
        run = _LAST_RUN.search(line.rstrip()) if len(line) >= _FULL else None
    if run is None:
        return None
    whole = len(run[1]) >= _FULL and drawn_by_lot(run[1])
    last = (
        body.full and len(run[1]) < _FULL and (run[1].endswith(b"=") or (run[2] is not None and drawn_by_lot(run[1])))
    )
    if not whole and not last:
        return None
    body.left, body.full = _PATIENCE, whole
    return run.start(1), len(run[1]), "private-key"


def _indented(line: bytes) -> bytes:
    """-> what stands before the name in the line of a block, a dash of a list being blank."""
    name = max(line.rfind(blank, 0, line.rstrip().rfind(b":")) for blank in (b" ", b"\t", b'"')) + 1
    before = line[:name]
    return (before[:-2] + b"  " if before.endswith(b"- ") else before).translate(_DIGITS)


def _block_part(body: _Body, line: bytes, mine: bool) -> _Span | None:
    rest = line[len(body.prefix) :] if mine else b""
    if not rest[:1].isspace():
        if line.strip() and (mine or not body.prefix.strip()):
            body.left = 0
        return None
    value = rest.strip()
    if not value or not is_secret(value, 0, True):
        return None
    return line.index(value, len(body.prefix)), len(value), "secret"
