"""Follows secrets over several lines: the body of a private key, the YAML block with a secret's value, the line after a
name that is alone on its line, the columns of a table.

Only lines that look like such a body are removed, with the same prefix as its other lines. Lines of other ranks between
them stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.open_secret import DIGITS, Begun, Span
from torchtriage.reading.redaction.secret_patterns import KEY_BEGINS, KEY_ENDS
from torchtriage.reading.redaction.secret_tables import Table
from torchtriage.reading.redaction.secret_values import drawn_by_lot, is_chosen, is_open, is_secret

_MAX_GAP = 1000  # lines without a part of the body, after which it is over
_MAX_OPEN = 16  # bodies at once
_BEGINS = lazy_regex(KEY_BEGINS.encode())
_ENDS = lazy_regex(KEY_ENDS.encode())
# A line of a body, and whether anything follows it.
_BODY = lazy_regex(rb"[ \t\"'|>*#]{0,40}([A-Za-z0-9+/]+={0,3})((?:\\+[nr])*[\"', |\r]*$)?")
_RUN = lazy_regex(rb"[A-Za-z0-9+/=]{24,}")
_LAST_RUN = lazy_regex(rb"([A-Za-z0-9+/]{60,80}={0,2})((?:\\+n)?[\"',]{0,3})$")
_FULL = 40  # characters of a line of a key's body; the last one is shorter
_HEX = lazy_regex(rb"[0-9a-f]{32}")  # a line of OpenVPN's keys
_MAX_MAPPING_LINES = 100  # lines
_LAST_NAME = lazy_regex(
    rb"(?:# )?[\"'\[]?[A-Za-z][\w.\[\]\"'-]*(?: (?:will|must) be \w+)?[ ]?(?:[:=]>?)?[ ]?[{\[(]?[ \t\r]*\Z"
)
_MEMBER = lazy_regex(
    rb"[ \t-]*[+~]?[ \t]*[\"']?[\w.-]{1,80}[\"']?[ \t]*(?:[:=]>?)[ \t]*[\"']?([^\s\"',]{8,4000})[\"',;]*[ \t\r]*$"
)
_FIRST_QUOTE = lazy_regex(rb"[^\"'\n]*(?=[\"'])")
_WRAPPED = lazy_regex(rb"([\"'])([^\"'\n]{6,400})\1[,)}\]]")
_VALUE = lazy_regex(rb"(?i)\b(?:value|default|data|plaintext)[\"']?[ ]?[:=]")
# PHP and R print a value below its name.
_TYPED = lazy_regex(rb"[^\n\"']{0,80}(?:(?:string|str|text|bytes)\(\d{1,6}\)|\[1\])[ ]?[\"']([^\"'\n]{1,400})[\"']")
_NO_VALUE = lazy_regex(rb"[A-Za-z_]\w*=[^=]|[^A-Za-z0-9]+\Z")  # an assignment, or a drawn line
_OUT = lazy_regex(rb"Out\[0+\]:\Z")  # before a notebook's output, with digits replaced by zeros


class Following:
    """The secrets that have begun and not ended. True if there are any."""

    def __init__(self) -> None:
        self._begun: dict[bytes, Begun] = {}

    def __bool__(self) -> bool:
        return bool(self._begun)

    def spans(self, data: bytes, begins: list[tuple[int, str]]) -> Iterator[Span]:
        """Yields (start, end, kind) of the secrets in `data`. `begins` has (end of the sign, what begins) for the
        places where something begins. What continues after `data` is found in the next call."""
        waiting = iter(begins)
        begin = next(waiting, None)
        at = 0
        while at < len(data):
            if not self._begun:
                if begin is None:
                    return
                at = data.rfind(b"\n", 0, begin[0] - 1) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            line = data[at:end]
            if self._begun:
                for start, after, kind in self._part(line):
                    yield at + start, at + after, kind
            opened = ""
            while begin is not None and begin[0] <= end + 1:
                if begin[1] == "key":
                    yield from self._key(data, at, begin[0], end)
                elif begin[1] != opened:  # the header of a table has one or more names
                    opened = begin[1]
                    for begun in _OPENED[begin[1]](line):
                        self._open(begun)
                begin = next(waiting, None)
            at = end + 1

    def _open(self, begun: Begun) -> None:
        if begun.left:
            self._begun.pop(begun.prefix, None)
            self._begun[begun.prefix] = begun
            if len(self._begun) > _MAX_OPEN:
                del self._begun[next(iter(self._begun))]

    def _key(self, data: bytes, line: int, at: int, end: int) -> Iterator[Span]:
        """Yields the part of a key in the line where it begins. Follows its body if it does not end there."""
        closing = _ENDS.search(data, at, end)
        ends = closing is not None
        dashes = closing.start() if closing else data.find(b"-----", at, end)
        runs = [run for run in _RUN.finditer(data, at, dashes if dashes >= 0 else end) if drawn_by_lot(run[0])]
        if runs:
            yield (at, dashes, "private-key") if ends else (runs[0].start(), runs[-1].end(), "private-key")
        if not ends:
            begin = _BEGINS.search(data, line, at)
            self._open(_Key(data[line : begin.start() if begin else at].translate(DIGITS)))

    def _part(self, line: bytes) -> Sequence[Span]:
        """Returns the secrets in a line that belong to something begun. Forgets what has ended."""
        plain = line.translate(DIGITS)
        found: Sequence[Span] = ()
        over = []
        for prefix, begun in self._begun.items():
            begun.left -= 1
            if not found:
                found = begun.part(line, plain)
            if begun.left <= 0:
                over.append(prefix)
        for prefix in over:
            del self._begun[prefix]
        return found


class _Key(Begun):
    """The body of a private key."""

    __slots__ = ("_full",)

    def __init__(self, prefix: bytes) -> None:
        self.prefix, self.left = prefix, _MAX_GAP
        self._full = False  # whether a full line was seen, so that a shorter one may be the last

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        mine = plain.startswith(self.prefix)
        if mine and _ENDS.search(line):
            self.left = 0
            return ()
        run = _BODY.match(line, len(self.prefix)) if mine else None
        if run is None:
            run = _LAST_RUN.search(line.rstrip()) if len(line) >= _FULL else None
            if run is not None and not self._full:
                self.prefix = plain[: run.start(1)]  # the first line's prefix was a sentence
        if run is None:
            return ()
        whole = (len(run[1]) >= _FULL or _HEX.fullmatch(run[1]) is not None) and drawn_by_lot(run[1])
        shorter = self._full and len(run[1]) < _FULL
        last = shorter and (run[1].endswith(b"=") or (run[2] is not None and drawn_by_lot(run[1])))
        if not whole and not last:
            return ()
        self.left, self._full = _MAX_GAP, whole
        return ((run.start(1), run.end(1), "private-key"),)


class _Block(Begun):
    """A YAML block, which has a larger indent than its name."""

    __slots__ = ()

    def __init__(self, line: bytes) -> None:
        name = line.rfind(b":")
        name = max(line.rfind(b" ", 0, name), line.rfind(b"\t", 0, name), line.rfind(b'"', 0, name)) + 1
        before = line[:name]  # the dash of a list counts as blank
        self.prefix = (before[:-2] + b"  " if before.endswith(b"- ") else before).translate(DIGITS)
        self.left = 20

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        mine = plain.startswith(self.prefix)
        rest = line[len(self.prefix) :] if mine else b""
        if not rest[:1].isspace():
            if (mine or not self.prefix.strip()) and line.strip():
                self.left = 0
            return ()
        value = rest.strip()
        if not value or not is_secret(value, 0, True):
            return ()
        start = line.index(value, len(self.prefix))
        return ((start, start + len(value), "secret"),)


class _Mapping(Begun):
    """A YAML block whose values are secrets whatever their names are. They have a larger indent than the block's
    name."""

    __slots__ = ("_doubt",)

    def __init__(self, line: bytes, doubt: int) -> None:
        name = _LAST_NAME.search(line)
        self.prefix = line[: name.start() if name else 0].translate(DIGITS)
        self._doubt = doubt
        self.left = _MAX_MAPPING_LINES if name else 0

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        if not plain.startswith(self.prefix):
            if not self.prefix.strip() and line.strip():
                self.left = 0  # smaller indent
            return ()
        rest = line[len(self.prefix) :]
        if rest[:1].strip() and rest[:2] != b"- ":
            self.left = 0
            return ()
        return self._member(line)

    def _member(self, line: bytes) -> Sequence[Span]:
        found = _MEMBER.match(line, len(self.prefix))
        if found is None or not self._believes(found[1]) or is_open(line, found.start(1)):
            return ()
        return ((found.start(1), found.end(1), "secret"),)

    def _believes(self, value: bytes) -> bool:
        return is_secret(value, self._doubt, False)


class _Object(_Mapping):
    """An object with the name of a secret; one of its values is the secret."""

    __slots__ = ()

    def _member(self, line: bytes) -> Sequence[Span]:
        return super()._member(line) if _VALUE.search(line) else ()

    def _believes(self, value: bytes) -> bool:
        return is_chosen(value) or super()._believes(value)


class _Section(_Mapping):
    """A section of an INI file whose values are secrets whatever their names are, up to the next section."""

    __slots__ = ()

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        if not line.strip() or line.startswith(b"[", len(self.prefix)):
            self.left = 0
            return ()
        return self._member(line)


class _Label(Begun):
    """A name alone on its line. Its value is the only word of the next line, or the last word after a beginning that
    both lines have. Or the next line begins with it in quotes, if a printer of objects wrapped its text."""

    __slots__ = ("_doubt", "_line")

    def __init__(self, line: bytes, doubt: int = 1) -> None:
        self._line = self.prefix = line.translate(DIGITS)
        self._doubt, self.left = doubt, 0 if b"</" in line else 3

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        if self._line.startswith(plain.rstrip()):
            return ()  # nothing follows the common beginning
        typed = _TYPED.match(line)
        if typed:
            self.left = 0
            return ((*typed.span(1), "secret"),) if is_secret(typed[1], self._doubt - 1, True) else ()
        quote = _FIRST_QUOTE.match(line)
        wrapped = _WRAPPED.match(line, quote.end()) if quote else None
        if wrapped and self._line.startswith(plain[: wrapped.start()].rstrip()):
            self.left = 0
            return ((*wrapped.span(2), "secret"),) if is_secret(wrapped[2], self._doubt - 1, True) else ()
        whole = line.rstrip(b" \t\r")
        word = max(whole.rfind(b" "), whole.rfind(b"\t")) + 1
        before = plain[:word].rstrip()
        item = before.endswith(b"-") and not self._line.startswith(before)
        if not self._line.startswith(before[:-1].rstrip() if item else _without_answer(before)):
            return ()
        self.left = 1 if item else 0  # a list may continue
        value = whole[word:].strip(b"\"',;")
        start = line.index(value, word)
        if len(value) < 6 or value[-1:] == b":" or _NO_VALUE.match(value):
            return ()
        secret = len(value) >= 8 and is_secret(value, self._doubt, False)
        if self._doubt == 1 and not secret:
            secret = is_secret(value, 0, False) and (is_chosen(value) or _is_deeper(line, self._line))
        return ((start, start + len(value), "secret"),) if secret else ()


def _without_answer(before: bytes) -> bytes:
    """Returns the beginning of a line without a notebook's `Out[0]:`."""
    return _OUT.sub(b"", before).rstrip() if before.endswith(b"]:") else before


def _is_deeper(line: bytes, above: bytes) -> bool:
    """Returns whether a line has a larger indent than the line above, like a value in YAML."""
    return len(line) - len(line.lstrip()) > len(above) - len(above.lstrip())


def _last_cell(line: bytes, doubt: int) -> list[Begun]:
    """Returns what a name at the end of its line begins: a table, or a value alone on the next line. If only blanks
    separate the possible cells of a header, returns both."""
    table = Table(line)
    return [table] if table.left and not table.aligned else [table, _Label(line, doubt)]


_OPENED: dict[str, Callable[[bytes], list[Begun]]] = {
    "block": lambda line: [_Block(line)],
    "label": lambda line: [_Label(line)],
    "printed": lambda line: [_Label(line)],
    "label of lot": lambda line: [_Label(line, 2)],
    "table": lambda line: [Table(line)],
    "last cell": lambda line: _last_cell(line, 2),
    "last cell of passwords": lambda line: _last_cell(line, 1),
    "mapping": lambda line: [_Mapping(line, 2)],
    "manifest": lambda line: [_Mapping(line, 3)],
    "object": lambda line: [_Object(line, 1)],
    "section": lambda line: [_Section(line, 2)],
}
