"""Removes secrets from text that is shown or stored. The value is replaced by a mark with its kind; the words that
identify it stay.

Hyperscan finds in one pass where secrets begin; a log without any is not copied. From there each secret is read to its
end. Secrets that continue over lines, such as a private key or a YAML block, are followed in `multiline_secrets`.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import ascii_letters, digits

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.known_secrets import KnownSecrets
from torchtriage.reading.redaction.multiline_secrets import Following
from torchtriage.reading.redaction.secret_patterns import (
    ADDRESS,
    APART,
    KEY_BEGINS,
    OPENS,
    UNLISTED,
    UNLISTED_WHOLE,
    Form,
    Named,
    keep_parsed,
    secret_kinds,
    words,
)
from torchtriage.reading.redaction.secret_values import (
    Begins,
    at_once,
    behind_name,
    drawn_by_lot,
    end_of,
    end_of_line,
    is_checksum,
    is_chosen,
    is_chosen_in_prose,
    is_digest,
    is_of_capitals,
    is_open,
    is_option,
    is_password,
    is_phrase,
    is_scattered,
    is_secret,
    may_be_chosen,
    quote_before,
    value_start,
)
from torchtriage.reading.scan import Scanner

_kept_in: Path | None = None
_Span = tuple[int, int, str]  # start, end and kind of a secret; the kind is empty if it is not a secret after all
_FULL_CHECK_LENGTH = 500  # bytes; of a longer value that is not a secret, only the end is checked again
_MAX_LENGTH = 16 << 10


def keep_compiled(folder: Path) -> None:
    """Sets the folder for the compiled patterns, because compiling takes half a second. Must be called before the first
    use."""
    global _kept_in  # the compiled patterns are shared by the whole process
    _kept_in = folder
    keep_parsed(folder)


def kept_scanner(patterns: list[bytes], once: bool = False) -> Scanner:
    """Returns a scanner for patterns of secrets. Its compiled form is stored in that folder."""
    key = b"secrets " + hashlib.sha256(b"\n".join([b"%d" % once, *patterns])).digest()
    return Scanner(lambda: patterns, _kept_in, key, once)


def redact(text: str, known: KnownSecrets | None = None) -> str:
    """Returns `text`, a few lines at most, with known kinds of secrets replaced by the mark `[redacted:kind]`. `known`
    has the secrets recognized before in the same log; those recognized here are added to it."""
    data = text.encode("utf-8", "surrogateescape")
    clean = _clean(data, Following(), KnownSecrets() if known is None else known)
    return text if clean is data else clean.decode("utf-8", "surrogateescape")


def redacted(blocks: Iterable[bytes], known: KnownSecrets | None = None) -> Iterator[bytes]:
    """Yields the same blocks, which end at line ends, without their secrets. The number of lines stays the same.
    `known` is used as in `redact`."""
    following = Following()
    known = KnownSecrets() if known is None else known
    for block in blocks:
        yield _clean(block, following, known)


def _clean(block: bytes, following: Following, known: KnownSecrets) -> bytes:
    hits = _scanner().ends(block)[0]
    if not hits and not following and not known:
        return block
    spans, begins = _found(block, hits, known)
    if begins or following:
        begins.sort()
        spans += following.spans(block, begins)
    if known:
        spans += known.spans(block)
    return _marked(block, spans) if spans else block


def _found(block: bytes, hits: list[tuple[int, int]], known: KnownSecrets) -> tuple[list[_Span], list[tuple[int, str]]]:
    """Returns the secrets at the patterns' matches, and adds them to `known`. Also returns where something begins that
    continues over lines, and what."""
    rules, weak = _rules(), _weak()
    looked_at = [0] * len(rules)  # end of the data in which each rule has nothing more to find
    covered = 0  # end of the last secret
    spans: list[_Span] = []
    begins: list[tuple[int, str]] = []
    for index, at in hits:
        if at <= looked_at[index] or (at <= covered and weak[index]):
            continue
        rule = rules[index]
        found = rule.find(block, at)
        if found:
            start, end, kind = found
            looked_at[index] = end
            if kind:
                spans.append(found)
                covered = max(covered, end + 1)
                if rule.learns:
                    known.add(block, start, end, kind)
        elif begun := rule.begun_at(block, at):
            begins.append((at, begun))
    return spans, begins


def _marked(block: bytes, spans: list[_Span]) -> bytes:
    """Returns the block with a mark in place of each span. Overlapping spans get one mark, with the kind of a secret's
    form if one is among them."""
    spans.sort(key=lambda span: span[0])
    telling = _telling()
    parts, done = [], 0
    start, end, kind = spans[0]
    for one in spans[1:]:
        if one[0] < end:
            end = max(end, one[1])
            if one[2] in telling and (one[0] == start or kind not in telling):
                kind = one[2]  # of two forms, the one that begins earlier is more specific
        else:
            parts += [block[done:start], b"[redacted:%b]" % kind.encode()]
            done = end
            start, end, kind = one
    return b"".join([*parts, block[done:start], b"[redacted:%b]" % kind.encode(), block[end:]])


class _Rule:
    """Finds the secrets of one of Hyperscan's patterns.

    `weak` is true if the rule adds nothing to a secret that another rule found there. `learns` is true if its secrets
    may appear elsewhere without the words that identify them here.
    """

    weak = learns = False
    pattern: str

    def find(self, data: bytes, at: int) -> _Span | None:
        """Returns the secret of the match that ends at `at`. If it is none, returns a span with an empty kind, to the
        place up to which nothing more is found."""
        return None

    def begun_at(self, data: bytes, at: int) -> str:
        """Returns the kind of thing that begins there and continues over lines, as named in `multiline_secrets`, or an
        empty text."""
        return ""


class _Formed(_Rule):
    """Finds a secret by its own form."""

    def __init__(self, form: Form, opening: str) -> None:
        self.pattern = f"{APART if form.apart else ''}{form.before}{re.escape(opening)}{form.rest}{{{form.least}}}"
        self._form = form
        self._opening = len(opening)
        self._rest = lazy_regex(f"{form.rest}*".encode())
        self._then = lazy_regex(form.then.encode()) if form.then else None

    def find(self, data: bytes, at: int) -> _Span | None:
        form = self._form
        end = self._rest.match(data, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        begin = at - form.least
        if self._then:
            found = self._then.match(data, end, end + _MAX_LENGTH)
            if found is None:
                return begin, end, ""
            end = found.end()
        if (form.random and not _random(data[begin:end])) or _MASKED.fullmatch(data, begin, end):
            return begin, end, ""
        begin -= self._opening
        return (_word_start(data, begin) if form.part else begin), end, form.kind


class _Behind(_Rule):
    """Finds a secret by the text before it."""

    learns = True

    def __init__(self, named: Named) -> None:
        self.pattern = named.pattern
        self._opens = named.assigned and named.doubt < 2
        self.weak = named.apart
        self._named = named

    def find(self, data: bytes, at: int) -> _Span | None:
        named = self._named
        begun = self._value(data, at)
        if begun is None:
            return None
        start, quote = begun.start, begun.quote
        if named.reach == "chosen" and (named.assigned or named.announced):
            end = end_of(data, start, quote)
            value = data[start:end]
            if named.announced:
                return (start, end, named.kind) if is_chosen(value) or is_phrase(value) else None
            return (start, end, named.kind) if is_chosen(value) and not is_open(data, start) else None
        if named.reach != "value":
            return _REACHES[named.reach](data, start, quote, named.kind)
        end = end_of(data, start, quote)
        if named.assigned and _is_other(data, at, start, end, quote):
            return None
        if end - start < named.least or not self._believes(data, at, begun, data[start:end]):
            return (start, end - _FULL_CHECK_LENGTH, "") if end - start > _FULL_CHECK_LENGTH else None
        if self._is_public(data, start, end):
            return None
        if named.assigned and quote:
            end = _end_of_list(data, start, end, quote, max(named.doubt, begun.doubt))
        elif named.assigned and data[start - 1 : start] == b" " and is_option(data, at - 1):
            end = _end_of_values(data, end)
        return start, end, named.kind

    def _is_public(self, data: bytes, start: int, end: int) -> bool:
        """Returns whether the words before the value say that anybody may see it."""
        named = self._named
        if named.assigned and is_checksum(data, start, end):
            return True
        if named.doubt >= 2 and (named.assigned or named.apart) and is_open(data, start):
            return True
        return named.apart and is_digest(data, start, end)

    def _value(self, data: bytes, at: int) -> Begins | None:
        """Returns where the value of the match that ends at `at` begins, or None."""
        named = self._named
        if named.doubt >= 2:
            start = at - named.least
            if named.doubt == 4:
                start = value_start(data, start)
            return Begins(start, quote_before(data, start))
        if not named.assigned:
            return Begins(at, b"") if named.reach in _FROM_THERE else Begins(*at_once(data, at))
        found = behind_name(data, at - 1)
        if found and named.verb and not data[at - 1 : found.start].strip(_BLANKS_AND_QUOTES):
            return found if is_option(data, at - 1) else None
        return found

    def _believes(self, data: bytes, at: int, begins: Begins, value: bytes) -> bool:
        """Returns whether the value is a secret."""
        named = self._named
        quoted = bool(begins.quote)
        doubt = max(named.doubt, begins.doubt)
        if is_secret(value, doubt, quoted):
            return True
        weaker = begins.doubt > named.doubt == 0  # the name would be enough if a sign separated it from the value
        if weaker or (doubt == 1 and _is_for_people(named.kind, value)):
            sign = data[at - 1 : at] == b"=" or (quoted and _SIGNS.search(data, at - 1, begins.start) is not None)
            in_prose = (named.verb and not sign) or (begins.prose and not quoted)
            if (is_chosen_in_prose if in_prose else is_chosen)(value):
                return True
        if weaker and quoted and is_secret(value, 6, True):
            return True
        return doubt == 1 and named.assigned and may_be_chosen(data, at - 1, value)

    def begun_at(self, data: bytes, at: int) -> str:
        opens = _OPENS.match(data, at - 1) if self._opens else None
        if opens is None or (self._named.verb and opens["cell"] is not None and not opens["cell"].strip(b" \r")):
            return ""
        return _opened_by(opens, self._named.kind)


class _Address(_Rule):
    """Finds the password in an address, or the token alone before its host."""

    pattern = ADDRESS
    learns = True

    def find(self, data: bytes, at: int) -> _Span | None:
        begin = data.rfind(b"://", max(0, at - 400), at) + 3
        address = _TO_ITS_END.match(data, begin)
        found = _USER.match(address[0].partition(b"://")[0]) if address and begin > 2 else None
        if found is None:
            return None
        user, password = found[1], found[2] or b""
        if _PORT.match(password) and b"/" in password:
            return None
        host = _AT_HOST.search(password)
        if host:
            password = password[: host.start()]
        start = begin + len(user) + 1
        end = start + len(password)
        if len(user) >= 16 and (drawn_by_lot(user) or (user.isalnum() and not user.isalpha())):
            return begin, end if found[2] is not None else start - 1, "token"
        return (start, end, "password") if password[:1] >= b"\x80" or is_secret(password, 0, True) else None


class _Unlisted(_Rule):
    """Finds a token of an unknown issuer by the form of a word that begins like known tokens."""

    pattern = UNLISTED
    weak = True

    def find(self, data: bytes, at: int) -> _Span | None:
        end = at if data[at - 1 : at].isalnum() else at - 1
        begin = _word_start(data, end)
        word = data[begin:end]
        if _NO_TOKEN.match(word):
            return None
        found = _UNLISTED.search(word) if b"_" in word or b"-" in word else None
        if found and is_scattered(found[1]):
            return begin + found.start(), end, "token"
        return _unnamed(data, begin, end)


class _Begins(_Rule):
    """Finds the beginning of a secret that continues over lines."""

    def __init__(self, begins: str, pattern: str) -> None:
        self._begins, self.pattern = begins, pattern

    def begun_at(self, data: bytes, at: int) -> str:
        return self._begins


class _Opening(_Rule):
    """Finds a name alone on its line. For these names, Hyperscan otherwise searches only with a value after them."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern.replace("?P<cell>", "?:").replace("?P<block>", "?:")
        self._whole = lazy_regex(pattern.encode(), re.MULTILINE)

    def begun_at(self, data: bytes, at: int) -> str:
        found = self._whole.search(data, max(0, at - 40))
        while found and found.end() < at:
            found = self._whole.search(data, found.end())
        assert found is not None
        return _opened_by(found, "")


_OF_WORDS = (ascii_letters + digits + "_-.~").encode()
_FROM_THERE = (
    "login",
    "before",
    "address",
    "dialled",
    "strong",
)  # kinds of context that find the beginning of the secret themselves
_BLANKS_AND_QUOTES = b" \t\"'`"
_SIGNS = lazy_regex(rb"[\"'][ \t]?:|=")
_NEXT_OF_LIST = lazy_regex(rb"(\\{0,15}[\"']),[ \t]?(\\{0,15}[\"'])")
_NEXT_WORD = lazy_regex(rb"[ ,]([A-Za-z0-9][\w.~+=-]{7,200})(?=[\s\"'])")  # of an option that takes several values
_BECOMES = lazy_regex(rb"(\\{0,15}[\"']) -> (\\{0,15}[\"'])")
_COUNT = lazy_regex(rb"\d+(?:\.\d+)?")
_NAMES = lazy_regex(rb"\\{0,15}[\"'][ \t]?:")
_MASKED = lazy_regex(rb"[xX*.]+|0+|[-_]+")  # replacements for a token
_UNLISTED = lazy_regex(UNLISTED_WHOLE.encode())
_NO_TOKEN = lazy_regex(lambda: words("begins_no_token"))
_OF_BASE64 = (ascii_letters + digits + "+/_-").encode()
_BASE64 = lazy_regex(rb"[A-Za-z0-9+/_-]{1,120}={0,2}")
_MAX_UNNAMED_LENGTH = 100  # bytes; a longer word is data
_OF_PASSWORDS = (ascii_letters + digits + "_!@#$%^*+-").encode()
_STRONG = lazy_regex(rb"[\w!@#$%^*+-]{8,80}")
_IN_A_PATH = (b"/", b"\\", b"%", b".")
_LENGTHS_OF_BASE64 = (40, 43, 64, 86)  # lengths of encoded 30, 32, 48 and 64 bytes
_TO_ITS_END = lazy_regex(rb"[^\s\"'<>`]{0,600}")
_USER = lazy_regex(rb"([^\s/:@]*)(?::([^\s]*))?@")
_PORT = lazy_regex(rb"\d{1,5}(?:[/?#]|$)")
_AT_HOST = lazy_regex(rb"@(?:[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/,?]|$)|[\w-]+:\d{2,5}(?:[/,?]|$))")
_SCHEME = lazy_regex(rb"([A-Za-z][\w-]{1,30})[ \t]+(?=[^\s])")
_WHOLE = lazy_regex(lambda: rb"(?i)" + words("signed_scheme"))
_OPENS = lazy_regex(OPENS.encode(), re.MULTILINE)
_MARK = b"[redacted:"
_LOGIN = lazy_regex(rb"[A-Za-z][\w.-]{0,40}:([^\s:@/\"'<>]{6,60})\Z")
_DIALLED = lazy_regex(rb"[A-Za-z][\w.-]{0,40}:([^\s\"'<>]{1,80})\Z")
_COMMAND = 240  # bytes before a value in which its user may be named
_OF_A_USER = lazy_regex(
    lambda: (
        rb"(?<!sudo)[ \"']-(?:[uUlD]|-?(?:[a-z]{1,12}-)?" + words("user_option") + rb")[\"',= ]|[ \"']login[\"', ]"
        rb"|[ ]user " + words("user_made") + rb" "
    )
)
_NO_NAME = lazy_regex(rb"[^A-Z!#$%^&*+]*[A-Z!#$%^&*+]")
_DIGEST_OF = lazy_regex(rb"(?i)(?:sha\d{1,3}|md5)[:=]\Z")
_TELLS_PASSWORD = lazy_regex("(?i)(?:password|passphrase|密码|口令)[\"' ]{1,3}\\Z".encode())
_WORD_AND_NUMBER = lazy_regex(rb"[a-z][a-z-]{5,30}\d{2,6}")
_TO_HOST = lazy_regex(rb"[^\s\"'<>/?]{1,200}")
_WORD_BEFORE = lazy_regex(
    rb"(?:\[[0-9;]{0,12}m)?([^\s\"'`/*#;(\[]{6,120})[\"'`]? (?:is|as) (?:the|your|my|our) [\w ]{5,12}\Z"
)
_COOKIES = lazy_regex(rb"[<\[{(]{0,2}(?:Cookie )?[^\s,=]{1,200}=")
_PIPED = lazy_regex(rb"[.:!?]*\\{0,3}[\"']?(?:[ \t]*\||\n[^\n+]{0,60}\++[ ])([^\n]{0,200})")
_ASKS_FOR_A_PASSWORD = lazy_regex(lambda: words("asks_for_password"))
_MAY_ASK_FOR_ONE = lazy_regex(lambda: words("may_ask_for_password"))
_CODE = (
    rb"(?:\d{6,10}|\d{6}(?:-\d{6}){7}|\d{3}(?:-\d{3}){1,3}|(?=[A-Z-]*\d|[B-DF-HJ-NP-TV-Z]{4})[A-Z0-9]{4}-[A-Z0-9]{4}"
    rb"|(?=[a-z-]{0,20}\d)[a-z0-9]{4,10}-[a-z0-9]{4,10})(?![\w-])"
)
_TYPED_CODE = lazy_regex(rb"(" + _CODE + rb"(?:[ ,;|]{1,4}" + _CODE + rb")*)")
_SEED = lazy_regex(rb"[a-z]{3,8}(?:[ ,]{1,3}[a-z]{3,8}){11,23}")
_IN_PERCENT = lazy_regex(rb"((?:[^\s%\"'<>&]|%(?!40|2[fF])){1,200})%40")


def _is_for_people(kind: str, value: bytes) -> bool:
    """Returns whether people may have chosen a secret of this kind, so that it need not be random."""
    # names of Kubernetes secrets consist of words
    return kind == "password" or (kind == "secret" and b"-" not in value)


def _end_of_list(data: bytes, start: int, end: int, quote: bytes, doubt: int) -> int:
    """Returns the end of the last secret in a list that begins with this one, or in `"old" -> "new"`."""
    listed = data[start - len(quote) - 1 : start - len(quote)] == b"["
    while (found := (_NEXT_OF_LIST if listed else _BECOMES).match(data, end)) and found[1] == found[2] == quote:
        begin = found.end()
        after = end_of(data, begin, quote)
        if not is_secret(data[begin:after], doubt, True) or _NAMES.match(data, after):
            break
        end = after
    return end


def _end_of_values(data: bytes, end: int) -> int:
    """Returns the end of the last random word among the values of an option, of which the first ends at `end`."""
    while (word := _NEXT_WORD.match(data, end)) and is_secret(word[1], 3, False):
        end = word.end()
    return end


def _header(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    scheme = _SCHEME.match(data, start)
    begin = scheme.end() if scheme else start
    if scheme and _WHOLE.match(scheme[1]):
        return begin, end_of_line(data, begin, quote), kind
    end = end_of(data, begin, quote)
    value = data[begin:end]
    return (begin, end, kind) if is_secret(value, 0, False) and not (len(value) < 16 and _is_word(value)) else None


def _is_word(value: bytes) -> bool:
    return value.isalpha() and (value.islower() or value.istitle() or value.isupper())


def _line(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    end = end_of_line(data, start, quote)
    return (start, end, kind) if _COOKIES.match(data, start, end) else None


def _piped(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    end = end_of(data, start, quote)
    piped = _PIPED.match(data, end)
    if piped is None:
        return None
    asks = _ASKS_FOR_A_PASSWORD.search(piped[1])
    if not asks and not _MAY_ASK_FOR_ONE.search(piped[1]):
        return None
    return (start, end, kind) if is_secret(data[start:end], 0 if asks else 1, bool(quote)) else None


def _percent(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    found = _IN_PERCENT.match(data, start)
    return (start, found.end(1), kind) if found and is_secret(found[1], 0, True) else None


def _attached(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    if data[start - len(quote) - 1 : start - len(quote)] != b"p":
        return None
    end = end_of(data, start, quote)
    return (start, end, kind) if is_secret(data[start:end], 0, bool(quote)) else None


def _quoted(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    end = end_of(data, start, quote)
    return (start, end, kind) if quote and is_secret(data[start:end], 0, True) else None


def _chosen(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    end = end_of(data, start, quote)
    end -= 2 * data.endswith((b"\\r", b"\\n"), start, end)
    if not _is_told(data, start, data[start:end]) or _DIGEST_OF.search(data, max(0, start - 10), start):
        return None
    return start, end, kind


def _is_told(data: bytes, start: int, value: bytes) -> bool:
    """Returns whether a value in prose is a password: by its form, or a word with a number right behind `password`."""
    if is_chosen_in_prose(value):
        return True
    if not _WORD_AND_NUMBER.fullmatch(value) or not is_chosen(value):
        return False
    return _TELLS_PASSWORD.search(data, max(0, start - 20), start) is not None


def _beside(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    end = end_of(data, start, quote)
    value = data[start:end]
    if not (is_chosen(value) or is_secret(value, 3, False)):
        return None
    line = max(data.rfind(b"\n", max(0, start - _COMMAND), start) + 1, start - _COMMAND, 0)
    line_end = data.find(b"\n", end, end + 100)
    return (start, end, kind) if _OF_A_USER.search(data, line, line_end if line_end >= 0 else end + 100) else None


def _strong(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    begin = start - len(data[max(0, start - 40) : start]) + len(data[max(0, start - 40) : start].rstrip(_OF_PASSWORDS))
    found = _STRONG.match(data, begin)
    return (*found.span(), kind) if found and is_password(found[0]) else None


def _login(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    begin = max(data.rfind(sign, max(0, start - 100), data.rfind(b"@", 0, start)) for sign in (b":", b"/")) + 1
    word = None if data.endswith(_MARK, 0, begin) else _TO_HOST.match(data, begin)
    value = word[0].rpartition(b"@")[0] if word else b""
    return (begin, begin + len(value), kind) if is_secret(value, 0, True) else None


def _address(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    host = data.rfind(b"@", 0, start)
    login = _LOGIN.search(data, max(0, host - 110), host)
    if login is None or not _NO_NAME.match(login[1]) or not is_secret(login[1], 6, True):
        return None
    return (*login.span(1), kind)


def _dialled(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    host = data.rfind(b"@", 0, start)
    login = _DIALLED.search(data, max(0, host - 160), host)
    return (*login.span(1), kind) if login and is_secret(login[1], 0, True) else None


def _before(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    word = _WORD_BEFORE.search(data, max(0, start - 200), start)
    return (
        (word.start(1), word.end(1), kind) if word and is_secret(word[1], 1, False) and not word[1].isdigit() else None
    )


def _opened_by(found: re.Match[bytes], kind: str) -> str:
    """Returns what a name alone on its line begins, as named in `multiline_secrets`."""
    if found["cell"] is not None:
        if found["cell"].strip(b" \r"):
            return "table"
        return "last cell of passwords" if kind == "password" else "last cell"
    return "block" if found["block"] else "label" if kind == "password" else "label of lot"


def _code(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    found = _TYPED_CODE.match(data, start)
    return (*found.span(1), kind) if found else None


def _words(data: bytes, start: int, quote: bytes, kind: str) -> _Span | None:
    found = _SEED.match(data, start)
    return (*found.span(), kind) if found else None


_REACHES = {
    "code": _code,
    "words": _words,
    "login": _login,
    "address": _address,
    "before": _before,
    "dialled": _dialled,
    "beside": _beside,
    "strong": _strong,
    "quoted": _quoted,
    "chosen": _chosen,
    "attached": _attached,
    "header": _header,
    "line": _line,
    "piped": _piped,
    "percent": _percent,
}


def _is_other(data: bytes, name: int, start: int, end: int, quote: bytes) -> bool:
    """Returns whether the text after a name is not its value: a number without quotes after a name in quotes, as in the
    vocabulary of a tokenizer, or the name of an object's next member."""
    if quote:
        between = data[name - 1 : start]
        return (b"," in between or b"{" in between) and _NAMES.match(data, end) is not None
    return end - start <= 6 and data[name - 1 : name] in (b'"', b"'") and _COUNT.fullmatch(data, start, end) is not None


def _random(value: bytes) -> bool:
    """Returns whether a part of the value that is too long for a word looks random."""
    return any(len(part) >= 12 and (drawn_by_lot(part) or is_of_capitals(part)) for part in re.split(rb"[-_.$]", value))


def _unnamed(data: bytes, begin: int, end: int) -> _Span | None:
    """Returns a word that is alone and so long and random that it must be a secret or an id, unless a name before it
    says that it is an id."""
    begin = (
        begin
        - len(data[max(0, begin - _MAX_UNNAMED_LENGTH) : begin])
        + len(data[max(0, begin - _MAX_UNNAMED_LENGTH) : begin].rstrip(_OF_BASE64))
    )
    found = _BASE64.match(data, begin)
    word = found[0] if found else b""
    if found is None or begin + len(word) < end or not (word.isalnum() or len(word.rstrip(b"=")) in _LENGTHS_OF_BASE64):
        return None
    if data[begin - 1 : begin] in (b"", b"\n") and data[begin + len(word) : begin + len(word) + 1] in (
        b"",
        b"\r",
        b"\n",
    ):
        return None  # a line of data
    if not 32 <= len(word) <= _MAX_UNNAMED_LENGTH or _NO_TOKEN.match(word) or not is_scattered(word):
        return None
    if data[begin - 1 : begin] in _IN_A_PATH or is_open(data, begin) or _holds_text(word):
        return None
    return begin, begin + len(word), "token"


def _holds_text(word: bytes) -> bool:
    """Returns whether a word is the base64 of a text. Redaction has already checked that text."""
    try:
        text = binascii.a2b_base64(word.rstrip(b"=") + b"==")
    except binascii.Error:
        return False
    return text.isascii() and text[:16].decode().isprintable()


def _word_start(data: bytes, at: int) -> int:
    """Returns the start of the word that contains `at`."""
    before = data[max(0, at - 120) : at]
    return at - len(before) + len(before.rstrip(_OF_WORDS))


@cache
def _rules() -> list[_Rule]:
    """Returns the rules for all patterns. Names come first, because a form after a name is less specific."""
    kinds = secret_kinds()
    openings = kinds.openings
    return [
        *(_Behind(named) for named in kinds.names),
        _Address(),
        *(_Formed(form, opening) for form in kinds.forms for opening in form.begins),
        _Unlisted(),
        _Begins("key", KEY_BEGINS),
        _Begins("label of lot", openings["label"]),
        _Begins("label", openings["decodes"]),
        _Begins("printed", openings["prints"]),
        _Begins("mapping", openings["mapping"]),
        _Begins("mapping", openings["resource"]),
        _Begins("object", openings["object"]),
        _Begins("section", openings["section"]),
        _Begins("manifest", openings["manifest"]),
        _Opening(openings["name"]),
    ]


@cache
def _telling() -> frozenset[str]:
    """Returns the kinds that are more specific than a name before the secret."""
    kinds = secret_kinds()
    return frozenset(["private-key", *(form.kind for form in kinds.forms)]) - {named.kind for named in kinds.names}


@cache
def _weak() -> list[bool]:
    return [rule.weak for rule in _rules()]


@cache
def _scanner() -> Scanner:
    return kept_scanner([rule.pattern.encode() for rule in _rules()])
