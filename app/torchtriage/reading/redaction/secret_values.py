"""Finds where the value after a name begins and ends, and decides whether it is a secret.

Every pattern runs in linear time: each step of a repetition decides by its first few bytes whether it continues.
"""

from __future__ import annotations

from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.secret_patterns import words

_MAX_LENGTH = 16 << 10  # bytes of a value that are read

# Between a name and its value there can be colors in any spelling, blanks and invisible characters.
_COLOUR = rb"(?:\x1b|\\{1,8}(?:x1b|u001[bB]|033|e)|\^\[|#033)\[[0-9;]{0,12}m"
_GAP = rb"(?:" + _COLOUR + rb"|\xe2\x80[\x8b-\x8d]|\xef\xbb\xbf|\xe2\x81\xa0|\xe3\x80\x80|\xc2\xa0|[ \t]){0,60}"
_QUOTE = rb"(?:\\{0,15}(?:\"{3}|'{3}|[\"'`])|&quot;|&#(?:x27|3[49]);|%2[27]|\xe2\x80[\x98-\x9d]|\xe3\x80[\x8c-\x91]|\\{1,8}u(?:201[8c]|300c))"
# Separators of name and value: a sign (spelled differently in a web address or HTML), a Chinese word, tags, a type, or
# a table's line.
_BECAME = "(?:已)?(?:重置|设置|修改|更改|更新|改|设)?".encode()  # before the Chinese word
_IS = (
    rb"(?:(?::[ \t]?| )(?:str(?:ing)?|SecretStr|Optional\[str\]|str \| None)[ \t]?=|:=|(?P<compared>==)|[=-]>|:{2,3}=|[?+.]=|::?|(?P<bracket>>(?=[ \t]))|&gt;|[=>]"
    rb"|%3[AaDd]|\xef\xbc[\x9a\x9d]|&#(?:61|58);|"
    + _BECAME
    + rb"(?:\xe4\xb8\xba|\xe6\x98\xaf)(?:\xef\xbc\x9a|:)?|\xef\xbc\x88[^\n\xef:]{1,60}\xef\xbc\x89(?:\xef\xbc\x9a|:)|\xe3\x80\x91|(?:\\{1,8}u[0-9a-f]{4}){1,3}\\{1,8}u4e3a|\\{1,8}u(?:ff1[ad]|4e3a|662f|3011|003[aAdD])|(?<=[ ])\.(?=[ ]\\{0,15}\")|,(?=[ \t]b?[\"'])|(?P<listed>,(?=b?[\"']))"
    rb"|(?P<comma>,)|(?P<tag>(?:</?[A-Za-z]{1,8}(?:[ ][^<>\n]{1,80})?>[ \t\r\n]{0,40}){1,4}))"
)
_CLOSES = (
    rb"(?:" + _QUOTE + rb"?(?:\[?\d{0,3}\])?\)?|\*\*|[ \t]\[[^\]\n]{0,24}\]|[ \t]?\([^()\n:]{1,24}\))"
)  # what can contain a name, or a prompt's default
_OPENS = (
    rb"(?:(?:Some|Ok|Just|[Ss]tr(?:ing)?|[Bb]ytes|[Tt]ext|Secret[A-Za-z]{0,10})?(?:\(\d{1,6}\)[ ]?|[(\[{])?[bBuUrRfF@$]{0,2}(?P<quote>"
    + _QUOTE
    + rb"))?"
)  # the first value of a list or tuple
_COLUMN = rb"(?P<column>\||\xe2\x94[\x82\x83]|\xe2\x95\x91|(?:\.{3,80}|~{3,80})(?=[ \t\"']|\w)|(?P<blank>(?:[ ]{2}|\t)(?=[ \t]*[^\s])))"
# What can be before a value: in YAML, a type or an anchor, if the value is the last word of its line; an address, which
# debuggers print; and an escaped line feed, also of a block of YAML, if the value is all of its line.
_BEFORE_VALUE = (
    rb"(?:(?:!!(?:str|binary)|&[a-z_]{1,24})[ ](?=[^\s\\]{1,400}(?:\\|[\"']?[ \t\r]{0,4}(?:\n|\Z|[|]|\xe2)))"
    rb"|0x[0-9a-f]{1,16}[ ](?=\\{0,15}[\"&])"
    rb"|(?P<below>(?:[|>][-+]?\d?[ ]?)?\\{1,8}n[ ]{0,20}(?=[^\s\\\"']{4,200}(?:[\\\"'\n]|\Z))))?"
)
_ASSIGNED = lazy_regex(
    _CLOSES + _GAP + rb"(?:" + _IS + rb"|" + _COLUMN + rb")(?:\*\*)?" + _GAP + _BEFORE_VALUE + _OPENS
)
_VERB = rb"(?:is|was|(?:(?:is|was|has been|was) )?(?:re)?(?:set|changed) (?:to|as)):?"
_SAID = lazy_regex(rb"[\"']?[ \t]+(?:" + _VERB + rb"[ \t]+)?(?P<quote>[\"'`])|[ \t]+" + _VERB + rb"[ \t]+(?P<none>)")
# After a Chinese name, which may be escaped as in JSON: blanks, or a typographic quote.
_BEHIND_CHINESE = lazy_regex(
    rb"(?:(?:[ \t]|\xe3\x80\x80)+(?P<quote>[\"'`]?)|(?P<typeset>\xe2\x80[\x98\x9c]|\xe3\x80\x8c|\\{1,8}u(?:201[8c]|300c)))"
)
_NEXT_WORD = lazy_regex(rb"(?:[\"'],[ \t]*|[ \t]+)" + _OPENS)
_GAP_AND_OPENING = lazy_regex(_GAP + _OPENS)
_ENTITY = lazy_regex(rb"(?:&quot;|&#(?:x27|3[49]);|%2[27])\Z")
_BLANKS = bytes.maketrans(b"\"'`=,([{\t\n|", b" " * 11)

# A value without quotes ends at a blank, a quote, a bracket that was opened before it, an escape, or where the next
# field begins: `a=1,b=2`, `a=1&b=2`.
_BARE = lazy_regex(
    rb"[^\s](?:[^\s\"'`<,;&)\]}\\\x1b\xe2\xe3\xef%#^]"
    rb"|[,;&](?!\s|[\"']|$|[\w.-]{0,40}[=:]|quot;|#\d|amp;|[lg]t;)"
    rb"|[)\]}](?![\s,;)\]}\"'.:]|$)"
    rb"|\\(?![nrtu\"'x\\0e]|$)"
    rb"|%(?!2[0267Cc]|3[Bb]|3[Dd]\w|0[AaDd])|#(?!033)|\^(?!\[)|<(?![/\w])){0,16000}"
)
_IN_QUOTES = {quote: lazy_regex(rb"(?:[^%b\\\n]|\\.)*" % quote) for quote in (b'"', b"'", b"`")}
_CLOSING = {b"\xe2\x80\x9c": b"\xe2\x80\x9d", b"\xe2\x80\x98": b"\xe2\x80\x99", b"\xe3\x80\x8c": b"\xe3\x80\x8d"}
_CLOSING |= {b"201c": b"201d", b"2018": b"2019", b"300c": b"300d"}  # escaped as in JSON


class Begins(NamedTuple):
    """Where a value begins, the quote before it, the smallest doubt about it, and whether prose separates it from its
    name."""

    start: int
    quote: bytes
    doubt: int = 0
    prose: bool = False


def behind_name(data: bytes, at: int) -> Begins | None:
    """Returns where the value of the name that ends at `at` begins, or None."""
    found = _ASSIGNED.match(data, at)
    if found and not (found["blank"] and is_option(data, at)):
        apart = (
            found["column"]
            or found["bracket"]
            or found["compared"]
            or found["tag"]
            or found["below"]
            or (found["listed"] and not is_option(data, at))
        )
        doubt = 2 if found["comma"] else 1 if apart else 0
        return Begins(found.end(), found["quote"] or b"", doubt)
    found = _NEXT_WORD.match(data, at)
    if found and is_option(data, at):
        return Begins(found.end(), found["quote"] or b"")
    found = _SAID.match(data, at)
    if found is None and (data[at - 1 : at] >= b"\x80" or data[at - 6 : at - 4] == b"\\u"):
        found = _BEHIND_CHINESE.match(data, at)
    if found is None:
        return None
    return Begins(found.end(), found["quote"] or found.groupdict().get("typeset") or b"", 1, prose=True)


def is_option(data: bytes, at: int) -> bool:
    """Returns whether the word that ends at `at` begins like an option of a command line."""
    return data[max(0, at - 64) : at].translate(_BLANKS).rsplit(b" ", 1)[-1].startswith(b"-")


def at_once(data: bytes, at: int) -> tuple[int, bytes]:
    """Returns where the value at `at` begins, after blanks and a quote, and the quote."""
    found = _GAP_AND_OPENING.match(data, at)
    return (found.end(), found["quote"] or b"") if found else (at, b"")


def value_start(data: bytes, at: int) -> int:
    """Returns the start of the word that contains `at`. A word has letters, digits and the signs of base64."""
    return at - len(data[max(0, at - 200) : at]) + len(data[max(0, at - 200) : at].rstrip(_OF_BASE64))


def quote_before(data: bytes, start: int) -> bytes:
    """Returns the quote directly before the value that begins at `start`, with its escape."""
    if data[start - 1 : start] in (b'"', b"'", b"`"):
        at = start - 1
        while at > start - 16 and data[at - 1 : at] == b"\\":
            at -= 1
        return data[at:start]
    found = _ENTITY.search(data, max(0, start - 6), start)
    return found[0] if found else b""


def end_of(data: bytes, start: int, quote: bytes) -> int:
    """Returns the end of the value that begins at `start`, after `quote` if there is one. Returns `start` if there is
    no value."""
    if quote in _IN_QUOTES:
        found = _IN_QUOTES[quote].match(data, start, start + _MAX_LENGTH)
        if found and data[found.end() : found.end() + 1] == quote:
            return found.end()
    elif quote:
        spelled = quote[-4:]
        closing = (
            quote[:-4] + _CLOSING[spelled] if quote[:1] == b"\\" and spelled in _CLOSING else _CLOSING.get(quote, quote)
        )
        end = data.find(closing, start, start + _MAX_LENGTH)
        if end >= 0 and b"\n" not in data[start:end]:
            return end
    found = _BARE.match(data, start, start + _MAX_LENGTH)
    return start + len(found[0].rstrip(b".:!?|")) if found and found[0][:1] not in b"\"'`\\,;&)]}" else start


def end_of_line(data: bytes, start: int, quote: bytes) -> int:
    """Returns the end of the text that begins at `start`: at its quote, or at the end of the line."""
    if quote:
        return end_of(data, start, quote)
    end = data.find(b"\n", start, start + _MAX_LENGTH)
    return min(len(data), start + _MAX_LENGTH) if end < 0 else end


# Texts in a secret's place that are not secrets: nothing, a word of prose, a variable, code, a path, a mask.
_PLACEHOLDER = lazy_regex(
    lambda: (
        rb"(?i)(?:"
        + words("placeholder")
        + rb"|[*x.\xe2\x80\xa2#?_-]{2,}|[*.#?_-]|\d{1,3}|.*\*{3}.*|\{?\[?redacted\b.*"
        rb"|[a-z_]+=(?-i:True|False|None|[\d.]+)"  # an argument
        rb"|<[a-z/|\xe2-\xef][^<>\d]*>?|<\w+_\d+>|\[[a-z_ -]*\]?|\(.{0,2}|\([a-z -]*\)?|\$\{.*|\$\(.*|\$\d|\$(?-i:[a-z_]+|[A-Z_][A-Z0-9_]*)"
        rb"|\{\w*(?:![rsa])?\}?|\{\{[\w .|\"$:=,()\[\]'-]*(?:\}\}.*)?|<%\S*|[\w-]{0,8}(?:\.{3}|\xe2\x80\xa6)[\w-]{0,6}|\{[\"'].*|\{\w+[:=].*|\[[\"'{(\d].*|%\(\w*\)?s?|%[sdr]|%\w+%|`.*|!\w*|@\w+@|\|[-+]?|>[-+]?|-+|&\w+;.*)"
    )
)
_CODE = lazy_regex(
    lambda: (
        words("code_root") + rb"[.\[].*|[A-Za-z_][\w.]*\(.*|[A-Za-z_][\w.]*\[.*|[A-Za-z]+Token\w*|lambda.*"
        rb"|(?:[a-z]+[_.])+(?:pass|secret|token|key|cred|auth|pw)[a-z]*(?:_[a-z]+)*|\w+_(?:pass\w*|secret|token|key|pw)"
    )
)
_PATH = lazy_regex(
    lambda: (
        rb"(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[A-Za-z][A-Za-z.]{0,20}|\.[\w-]+)(?:[/\\][\w.@+=,-]*)+|(?:[a-z][a-z0-9+]{1,8}:)?/?/[a-z][\w.:-]*(?:/\S*)?"
        rb"|(?:/[a-z_][a-z0-9_.-]*)+/?|[\w./-]+\." + words("file_type") + rb"|[a-z][a-z_-]{1,20}(?:/[\w.=+-]+){2,}"
    )
)
# Names with these ends, or these names, are not secret.
_OPEN_NAME = lazy_regex(
    lambda: (
        rb"(?i)"
        + words("open_key_for")
        + rb"[_-]?key$|"
        + words("open_token_for")
        + rb"[_-]?token$|"
        + words("open_ending")
        + rb"$"
    )
)
_DIGESTED = lazy_regex(lambda: rb"(?i)" + words("digested") + rb"[^\n]{0,48}\Z")
_CHECKSUM = lazy_regex(rb"(?i)(?:checksum|digest|hash(?:ed)?)[/._-][\w.-]{1,30}[\"']?[:= ]{1,3}[\"']?\Z")
_WORD = lazy_regex(rb"[\w.-]+")
_VERBS = (b"is", b"was")
_LAST_WORDS = (b"key", b"token")  # of a name of two words: `cache key`
_NUMBER = lazy_regex(rb"[-+]?[\d.,:xXeE+/%_-]*\d[\d.,:xXeE+/%_-]*(?:[KMGTBkms%]|ms|GB|MB)?")
_WORDS = lazy_regex(rb"[^\W\d_]*(?:[-_./: ,=]+[^\W\d_]*)*")
_UNSPEAKABLE = lazy_regex(
    rb"(?=[A-Za-z]*[a-z])(?=[A-Za-z]*[A-Z])[A-Za-z]*(?:[B-DF-HJ-NP-TV-XZb-df-hj-np-tv-xz]{6})[A-Za-z]*"
)
_PARTING = lazy_regex(rb"[-_./: ]")
_LIKE_A_KEY = lazy_regex(rb"(?:sk|rk)[-_](?=[a-z_-]*\d)[\w-]{6,}")
_SEPARATED = lazy_regex(rb"\w[-_./: ]\w")
# Letters and digits with nothing between them, or with signs that nobody uses to write words.
_SURE = lazy_regex(rb"(?=[^\d]{0,40}\d)(?=[^A-Za-z]{0,40}[A-Za-z])[A-Za-z0-9+=!@~^]{7,200}")
_LONG_WORD = lazy_regex(rb"(?=[^\d]{0,60}\d[^\d]{0,60}\d)(?=[^A-Za-z]{0,60}[A-Za-z])[A-Za-z0-9+=]{16,200}")
_NAME_AND_NUMBER = lazy_regex(rb"[A-Z][a-z]{2,12}[-_.]\d{3,6}")  # a kind of password that people choose
# Words, digits and signs in the form of passwords that people choose; and those that in prose nobody would take for a
# name.
_CHOSEN = lazy_regex(
    rb"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z][\w.-]{0,24}[!@#$%^&*+][\w!@#$%^&*+.-]{0,40}"
    rb"|(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])(?=[\w-]*[!#$%^&*+])[\w!#$%^&*+-][\w!@#$%^&*+.-]{5,60}"
    rb"|[A-Za-z]{3,40}(?:[-_.][A-Za-z]{3,12}){0,4}[-_.]?\d{1,6}|[A-Z][a-z]{2,12}[-_.]?\d{3,8}|[A-Z][a-z]\d{4,10}"
    rb"|(?=\D*\d)[A-Za-z]{1,12}\d{1,6}[A-Za-z][A-Za-z0-9]{0,20}"
    rb"|[A-Za-z]{1,12}\d{1,3}[A-Za-z]{1,12}\d{1,3}[A-Za-z]{2,12}[-_.][A-Za-z0-9]{1,12}"
    rb"|(?=[^A-Z]*[A-Z])[a-z]{1,12}\d{1,6}[a-z]{2,20}(?:[-_.][A-Za-z][A-Za-z0-9]{0,20}){1,3}"
)
_MAX_CHOSEN_LENGTH = 100
_SURELY_CHOSEN = lazy_regex(
    rb"(?=.*[!@#$%^&*+]).*|[A-Z][a-z]\d{5,10}|[A-Z][a-z]{2,12}[-_.]\d{3,6}|(?:[a-z]{3,10}-){2,4}[a-z]{3,10}\d{1,4}|(?:[a-z]{3,10}-){1,4}\d{2,3}"
    rb"|(?=[^A-Z]*[A-Z])[A-Za-z]{3,12}(?:[-_.][A-Za-z]{3,12}){1,3}[-_.]?\d{1,4}"
    rb"|(?:[a-z]{3,12}_){1,3}[a-z]{3,12}\d{1,4}|[A-Z][a-z]{2,12}\d{3,6}"
)
_PHRASE = lazy_regex(rb"(?:[a-z]{3,12}-){2,5}[a-z]{3,12}|(?:[a-z]{3,12}_){3,5}[a-z]{3,12}")
_PASSWORD = lazy_regex(rb"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)(?=[^!#$%^*]*[!#$%^*])[\w!@#$%^*+-]{8,40}")
_NAME_AND_PLACE = lazy_regex(rb"[A-Za-z]\w*[$#@]\d+|\w+\d%")  # a Java class, a share
_NOT_CHOSEN = lazy_regex(
    lambda: (
        rb"(?i)"
        + words("numbered")
        + rb"[-_.:]?\d+(?:[-_.]?\w+)?|(?-i:[a-z][a-z0-9_.+-]+|[A-Z0-9_.-]{2,})@[A-Za-z][\w-]*(?:[.:][\w.-]+)?|\w[\w.+-]*@[A-Za-z][\w-]*\.[\w.-]+|\w+[-_]?\d+(?:\.\d+)+.*"
    )
)
_ALGORITHM = lazy_regex(lambda: rb"(?i)" + words("algorithm"))
_DIGIT_AND_LETTER = lazy_regex(rb"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])")
_SURE_NAME = lazy_regex(lambda: rb"(?i)" + words("sure_name"))
_BOTH_CASES = lazy_regex(rb"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^\d]*\d)")
_CAPITALS = lazy_regex(rb"(?=[0-9A-F]*[G-Z])(?=[A-Z]*[0-9])[A-Z0-9]{16,80}")
_OF_BASE64 = (ascii_lowercase + ascii_uppercase + digits + "+/_-").encode()
_OF_DIGESTS = range(32, 65)  # hexadecimal digits
_RUNS = lazy_regex(rb"[A-Za-z0-9]{16,}")
_ARGUMENT = lazy_regex(rb"[A-Za-z_][A-Za-z_-]{1,30}=[^=]")  # it has a name of its own
_HEX_PART = lazy_regex(rb"[0-9a-f]*")
_HEX = lazy_regex(rb"(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{32,400}")
_CLASSES = bytes(
    ord("a")
    if chr(byte) in ascii_lowercase
    else ord("A")
    if chr(byte) in ascii_uppercase
    else ord("0")
    if chr(byte) in digits
    else ord(" ")
    for byte in range(256)
)
_CHANGES = (b"aA", b"a0", b"A0", b"0a", b"0A")


def is_open(data: bytes, start: int) -> bool:
    """Returns whether the name before the value that begins at `start` says that the value is public."""
    if data[start - 2 : start] == b"\\t":
        start -= 2
    before = _WORD.findall(data, max(0, start - 64), start)
    if before and before[-1] in _VERBS:
        before.pop()
    if not before:
        return False
    name = before[-1]
    if (
        len(before) > 1
        and name.lower() in _LAST_WORDS
        and data.rfind(before[-2] + b" " + name, max(0, start - 64), start) >= 0
    ):
        name = before[-2] + b"_" + name
    return _is_open_name(name)


def is_digest(data: bytes, start: int, end: int) -> bool:
    """Returns whether the value may be a digest, and a word before it on its line says that it is one."""
    return (
        _HEX.fullmatch(data, start, end) is not None and _DIGESTED.search(data, max(0, start - 64), start) is not None
    )


def is_checksum(data: bytes, start: int, end: int) -> bool:
    """Returns whether the value is a digest of what its name says, as in `checksum/secret: …`."""
    return (
        _HEX.fullmatch(data, start, end) is not None and _CHECKSUM.search(data, max(0, start - 64), start) is not None
    )


@lru_cache(maxsize=1024)
def _is_open_name(name: bytes) -> bool:
    return _OPEN_NAME.search(name) is not None


@lru_cache(maxsize=4096)  # many ranks print the same
def is_secret(value: bytes, doubt: int, quoted: bool) -> bool:
    """Returns whether the value of a name is a secret. `doubt` says which values are: 0 anything but a placeholder,
    1 anything but words, 2 random or very long values, 3 random values except digests, 4 values with a part of mixed
    letters and digits, 5 hexadecimal values as long as digests, 6 random values, or letters with a digit."""
    if not value or not _is_random_enough(value, doubt):
        return False
    if doubt == 5:
        return len(value) in _OF_DIGESTS and _HEX.fullmatch(value) is not None
    if doubt == 4:
        return any(is_mixed(part) for part in _RUNS.findall(value))
    if _SURE.fullmatch(value):
        return _ALGORITHM.fullmatch(value) is None
    if value[:1] >= b"\x80" or _PLACEHOLDER.fullmatch(value) or (not quoted and _CODE.fullmatch(value)):
        return False
    if quoted and b" " in value and _PLACEHOLDER.fullmatch(value.split(b" ", 1)[0]):
        return False
    if _PATH.fullmatch(value) and not any(map(_mixed, value.split(b"/"))):
        return False
    return doubt != 1 or (len(value) >= 6 and _is_no_word(value))


def _is_random_enough(value: bytes, doubt: int) -> bool:
    """Returns whether a value can be a secret at this `doubt`, as `is_secret` explains it."""
    if doubt >= 2 and _ARGUMENT.match(value):
        return False
    if doubt == 2:
        return drawn_by_lot(value) or _LONG_WORD.fullmatch(value) is not None
    if doubt == 3:
        both = _BOTH_CASES.search(value) or _CAPITALS.fullmatch(value)
        return both is not None and drawn_by_lot(value) and not _is_joined(value)
    return doubt != 6 or drawn_by_lot(value) or _DIGIT_AND_LETTER.match(value) is not None


def may_be_chosen(data: bytes, name_end: int, value: bytes) -> bool:
    """Returns whether a value that is not a word is a secret because of its name. It needs a digit if the name says
    what it is for."""
    chosen = is_chosen(value) or (
        len(value) >= 8 and _DIGIT_AND_LETTER.match(value) is not None and is_secret(value, 0, False)
    )
    return chosen and is_sure_name(data[max(0, name_end - 40) : name_end])


def is_sure_name(name: bytes) -> bool:
    """Returns whether a name, not of a password, says itself that it is the name of a secret."""
    return _SURE_NAME.search(name) is not None


@lru_cache(maxsize=4096)
def is_chosen(value: bytes) -> bool:
    """Returns whether a value looks like a password: words with digits or signs, as people choose them, or a random
    text; but not a term with a number or an address."""
    if not 6 <= len(value) <= _MAX_CHOSEN_LENGTH or (_CHOSEN.fullmatch(value) is None and not _mixed(value)):
        return False
    if _NOT_CHOSEN.fullmatch(value) or _ALGORITHM.fullmatch(value):
        return False
    return b"_" not in value or _CODE.fullmatch(value) is None


def is_chosen_in_prose(value: bytes) -> bool:
    """Returns the same for a value in prose, where names with numbers also appear."""
    return is_chosen(value) and (_mixed(value) or _SURELY_CHOSEN.fullmatch(value) is not None)


def is_phrase(value: bytes) -> bool:
    """Returns whether a value is a password made of words that people can remember."""
    return _PHRASE.fullmatch(value) is not None


def is_password(value: bytes) -> bool:
    """Returns whether a value is a password by its form alone: upper-case and lower-case letters, digits, and a sign
    that names do not have."""
    return _PASSWORD.fullmatch(value) is not None and _NAME_AND_PLACE.fullmatch(value) is None


def _mixed(value: bytes) -> bool:
    return _SURE.fullmatch(value) is not None and (is_mixed(value) or (len(value) < 16 and drawn_by_lot(value)))


def _is_no_word(value: bytes) -> bool:
    if value.isdigit() or _NAME_AND_NUMBER.fullmatch(value):
        return True
    if _NUMBER.fullmatch(value):
        return False
    if _WORDS.fullmatch(value) or _SEPARATED.search(value):
        return (
            drawn_by_lot(value)
            or _UNSPEAKABLE.fullmatch(value) is not None
            or any(map(_mixed, _PARTING.split(value)))
            or _LIKE_A_KEY.fullmatch(value) is not None
        )
    return True


def _is_joined(value: bytes) -> bool:
    """Returns whether a value consists of words, numbers and digests that signs join, as names do."""
    parts = _PARTING.split(value)
    return len(parts) > 1 and all(part.isalpha() or _HEX_PART.fullmatch(part) for part in parts)


def is_mixed(value: bytes) -> bool:
    """Returns whether a value is random, with lower-case and upper-case letters, and digits among the letters."""
    classes = value[:400].translate(_CLASSES)
    return (
        _BOTH_CASES.search(value) is not None
        and drawn_by_lot(value)
        and classes.count(b"a0") + classes.count(b"A0") >= 2
        and classes.count(b"0a") + classes.count(b"0A") >= 2
    )


def is_of_capitals(value: bytes) -> bool:
    """Returns whether a value is random, with upper-case letters and digits."""
    return _CAPITALS.fullmatch(value) is not None


def is_scattered(value: bytes) -> bool:
    """Returns whether lower-case letters, upper-case letters and digits alternate so often that no words are joined in
    a value."""
    classes = value[:400].translate(_CLASSES)
    return is_mixed(value) and sum(map(classes.count, (*_CHANGES, b"Aa"))) * 5 >= 2 * len(classes)


def drawn_by_lot(value: bytes) -> bool:
    """Returns whether letters and digits alternate as often as in random text."""
    if _HEX.fullmatch(value):
        return True
    classes = value[:400].translate(_CLASSES)
    return len(value) >= 8 and sum(map(classes.count, _CHANGES)) * 6 >= len(classes)
