"""What secrets look like: the data file `secret_kinds.yaml` in, the patterns that find them out.

The file explains its fields. It lies beside this module and not in the knowledge base, which redaction works without.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torchtriage.reading import disk_cache

_FILE = Path(__file__).with_name("secret_kinds.yaml")
_kept_in: Path | None = None

# No letter stands in front, but for that of an escape: a colour, a line feed, a percent sign.
APART = r"(?:^|[^A-Za-z]|\\[a-z]|\[[0-9;]{0,12}m|%[0-9A-F]{2}|\\[ux][0-9a-f]{2,4})"
# A password, or a token in its place, in an address: from its scheme to an @.
ADDRESS = r"://[^\s/@\"'<>`]{0,120}(?::[^\s\"'<>`]{0,250})?@"
# A token of an issuer that has no row: a short word, then letters and digits that nobody would write. What Hyperscan sees of
# it, where letters of both cases and digits change places (which costs it half of what the word before would), and the
# byte behind it; the whole.
UNLISTED = r"[a-z0-9][A-Z][A-Za-z]{0,9}[0-9][A-Za-z0-9]{8,}(?:[^A-Za-z0-9]|\z)"
UNLISTED_WHOLE = r"(?<![A-Za-z_-])[A-Za-z][A-Za-z0-9]{1,11}[_-](?:[A-Za-z0-9]{1,8}[_-])?([A-Za-z0-9]{30,})\Z"
# The first line of a private key: of PEM and OpenPGP, of SSH2, of OpenVPN and NATS, of Tarsnap; of a file of PuTTY.
_KEY = (
    r"(?:-{4,6} ?%s [A-Z0-9 ]{0,24}(?:PRIVATE KEY(?: BLOCK)?|NKEY SEED) ?-{4,6}"
    r"|-----%s OpenVPN (?:Static key V\d|tls-crypt-v2 (?:client|server) key)-----|# %s OF [A-Z]{3,12} KEY FILE)"
)
KEY_BEGINS = rf"(?:{_KEY % ('BEGIN', 'BEGIN', 'START')}|Private-Lines: \d{{1,3}})"
KEY_ENDS = rf"(?:{_KEY % ('END', 'END', 'END')}|Private-MAC:)"
# Behind a name with nothing more on its line: of a block of YAML, of a value on the next line, of a table's column.
OPENS = (
    r"[\"']?\]?(?:(?P<cell>[,;\t]|[ ]{0,40}(?:[|&]|!!|\xe2\x94[\x82\x83]|\xe2\x95\x91)|</t[hd]>|[ ]{2,60}[^\s]|[ \r]{0,2}$)"
    r"|[ \t]{0,4}(?:[:=]?>|[:=]|\xef\xbc\x9a)[ \t]{0,4}(?:!!?\w+[ ])?(?P<block>[|>][-+]?\d?)?[ \t\r]{0,4}$)"
)

# What Hyperscan takes for what parts a name from its value, and a value that is drawn by lot; `secret_values` looks closer.
_MARKS = r"(?:[^\w\n]|quot;|#x27;|#3[49];)*"  # quotes, escaped or not, and whatever else is no letter
_SIGN = r"(?:[=:>|,(]|\.{3} |%3[ad]|\xef\xbc[\x9a\x9d]|\xe4\xb8\xba|\xe6\x98\xaf|u4e3a|u662f|#(?:61|58);|\xe2\x94[\x82\x83]|\xe2\x95\x91)"
# It begins with what is no letter, so that `tokens_per_second` costs Hyperscan nothing.
_PARTED = (
    rf"(?:{_SIGN}|[^\w\n=:]+(?:(?:quot;|#x27;|#3[49];|[0-9;]*m|2[27])[^\w\n=:]*)?{_SIGN}"
    rf"|(?:: ?| )(?:str|string|SecretStr|Optional\[str\])[^\w\n=:]*{_SIGN})"
    r"[^\w\n]*(?:(?:u001b|x1b|033)\[)?(?:[0-9;]+m|quot;|#x27;|#3[49];|2[27])?[^\w\n]*"
)
_LOT = r"\w[\w.~+/=%-]"
_ALPHABETS = {4: "[A-Za-z0-9][A-Za-z0-9]", 5: "[0-9a-f][0-9a-f]"}  # by doubt
# What a pattern of the file may refer to besides the lists of words.
_PIECES = {
    "apart": APART,
    "marks": _MARKS,
    "opens": OPENS,
    "options": r"[^\n|;&]*[ \t\"']",  # what may stand between a command and its option
    "next": r"[\"']?,?[ \t]",  # what parts two words of a command, or two members of a list
    "quote": r"(?:[\"']|&#x27;|&#39;|&quot;)",
    "escaped": r"(?:\\{0,4}[\"']|&#x27;|&#39;|&quot;)",  # a quote, also inside another string
    # Behind a name in XML: its value's tag, on the same line or the next.
    "value_below": (
        r"(?:<|&lt;)/name(?:>|&gt;)(?:[ \t\r]{0,4}\n[^\n<&]{0,120}|\\{1,8}[nr][^\n<&]{0,40})?(?:<|&lt;)value(?:>|&gt;)"
    ),
}
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Form:
    """A secret that is known by how it begins, whatever stands before it."""

    kind: str
    rest: str
    least: int
    begins: tuple[str, ...] = ("",)
    then: str = ""
    before: str = ""
    apart: bool = False
    random: bool = False
    part: bool = False
    example: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """A secret that is known by what stands before it, which stays."""

    kind: str
    before: str
    example: str
    doubt: int = 0
    least: int = 1
    assigned: bool = False
    reach: str = "value"
    apart: bool = False
    verb: bool = False
    announced: bool = False
    stage: str = ""  # of an assigned name: what may follow it before its value

    @property
    def pattern(self) -> str:
        """-> what Hyperscan looks for. It ends behind the first `least` bytes of a value that is drawn by lot, behind the
        byte after another's name, else where the value or its quote begins."""
        lot = f"{_ALPHABETS.get(self.doubt, _LOT)}{{{self.least - 1}}}"
        if not self.assigned:
            return rf"{self.before}[\"'\\ \t]{{0,12}}{lot}" if self.doubt >= 2 else self.before
        if self.doubt < 2:
            return rf"(?i)(?:{self.before})(?:[_-]?{self.stage})?[^\w-]"
        return rf"(?i)(?:(?:{self.before})(?:{_PARTED})|-[\w.-]*(?:{self.before})[\"',]{{0,2}}[ \t][\"']?){lot}"


@dataclass(frozen=True, slots=True)
class SecretKinds:
    """All of the file. `openings`: patterns by name. `words`: for each list a pattern for any of its words."""

    forms: tuple[Form, ...]
    names: tuple[Named, ...]
    openings: dict[str, str]
    words: dict[str, str]


def keep_parsed(folder: Path) -> None:
    """Has the parsed file kept in a folder, as to parse it takes 20 ms; called before the first use."""
    global _kept_in  # What is parsed is one for the whole process, as the file is.
    _kept_in = folder


@cache
def secret_kinds() -> SecretKinds:
    """-> what the file says, its references filled in."""
    content = _content()
    pieces = dict(_PIECES)
    for name in content["words"]:
        _fill_words(name, content["words"], pieces)

    def filled(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"before": _filled(row["before"], pieces)} if "before" in row else row

    return SecretKinds(
        forms=tuple(Form(**filled(row) | {"begins": tuple(row.get("begins", [""]))}) for row in content["forms"]),
        names=tuple(Named(**filled(row), stage=pieces["stage"]) for row in content["names"]),
        openings={name: _filled(pattern, pieces) for name, pattern in content["openings"].items()},
        words={name: pieces[name] for name in content["words"]},
    )


def words(name: str) -> bytes:
    """-> a pattern for any word of one of the file's lists."""
    return secret_kinds().words[name].encode()


def _content() -> dict[str, Any]:
    text = _FILE.read_bytes()
    kept = _kept_in and _kept_in / f"secrets-{hashlib.sha256(text).hexdigest()[:32]}.json"
    if kept:
        try:
            return json.loads(disk_cache.read(kept))  # type: ignore[no-any-return]
        except (OSError, ValueError):
            pass
    import yaml  # Where the parsed file is kept, a start does without it.

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast
    content: dict[str, Any] = yaml.load(text, Loader=loader)
    if kept:
        disk_cache.keep(kept, json.dumps(content).encode())
    return content


def _fill_words(name: str, words: dict[str, list[str]], pieces: dict[str, str]) -> str:
    """-> the pattern for any word of a list, which it puts among the pieces; lists may refer to others."""
    if name not in pieces:
        for other in _REFERENCE.findall("|".join(words[name])):
            _fill_words(other, words, pieces)
        spelled = [_filled(one, pieces) for word in words[name] for one in _spelled(word)]
        pieces[name] = f"(?:{'|'.join(spelled)})"
    return pieces[name]


def _spelled(word: str) -> list[str]:
    """-> the word as it is, and as JSON escapes it."""
    if word.isascii():
        return [word]
    return [word, "".join(char if char.isascii() else rf"\\{{1,8}}u{ord(char):04x}" for char in word)]


def _filled(pattern: str, pieces: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda found: pieces[found[1]], pattern)
