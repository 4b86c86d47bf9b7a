"""The patterns of secrets, from the data file `secret_kinds.yaml`.

The file explains its fields. It is next to this module and not in the knowledge base, because redaction must work
without the knowledge base.
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

# No letter comes before it, except that of an escape: a color, a line feed, a percent sign.
APART = r"(?:^|[^A-Za-z]|\\[a-z]|\[[0-9;]{0,12}m|%[0-9A-F]{2}|\\[ux][0-9a-f]{2,4})"
# No character of base64 comes before it, except that of an escape.
_OUTSIDE = APART.replace("[^A-Za-z]", "[^A-Za-z0-9+/]")
# A password in an address, or a token in its place, from the scheme to an @.
ADDRESS = r"://[^\s/@\"'<>`]{0,120}(?::[^\s\"'<>`]{0,250})?@"
# A token of an unknown issuer: a short word, then letters and digits that nobody would write. There are two patterns:
# one for Hyperscan, which matches where upper-case letters, lower-case letters and digits alternate (half as expensive
# as the word before would be) and the next byte; and one for the whole token.
UNLISTED = r"[a-z0-9][A-Z][A-Za-z]{0,9}[0-9][A-Za-z0-9]{8,}(?:[^A-Za-z0-9]|\z)"
UNLISTED_WHOLE = r"(?<![A-Za-z_-])[A-Za-z][A-Za-z0-9]{1,11}[_-](?:[A-Za-z0-9]{1,8}[_-])?([A-Za-z0-9]{30,})\Z"
# The first line of a private key: of PEM and OpenPGP, SSH2, OpenVPN and NATS, Tarsnap; and of a PuTTY file.
_KEY = (
    r"(?:-{4,6} ?%s [A-Z0-9 ]{0,24}(?:PRIVATE KEY(?: BLOCK)?|NKEY SEED) ?-{4,6}"
    r"|-----%s OpenVPN (?:Static key V\d|tls-crypt-v2 (?:client|server) key)-----|# %s OF [A-Z]{3,12} KEY FILE)"
)
KEY_BEGINS = rf"(?:{_KEY % ('BEGIN', 'BEGIN', 'START')}|Private-Lines: \d{{1,3}})"
KEY_ENDS = rf"(?:{_KEY % ('END', 'END', 'END')}|Private-MAC:)"
# After a name alone on its line: a YAML block, a value on the next line, the column of a table.
OPENS = (
    r"[\"']?\]?(?:(?P<cell>[,;\t]|[ ]{0,40}(?:[|&]|!!|\xe2\x94[\x82\x83]|\xe2\x95\x91)|</t[hd]>|[ ]{2,60}[^\s]|[ \r]{0,2}$)"
    r"|[ \t]{0,4}(?:[:=]?>|[:=]|\xef\xbc\x9a)[ \t]{0,4}(?:!!?\w+[ ])?(?P<block>[|>][-+]?\d?)?[ \t\r]{0,4}$)"
)

# For Hyperscan: text between a name and its value, and a random value. `secret_values` checks them more exactly.
_MARKS = r"(?:[^\w\n]|quot;|#x27;|#3[49];)*"  # quotes, escaped or not, and any other characters except letters
_SIGN = r"(?:[=:>|,(]|\.{3} |%3[ad]|\xef\xbc[\x9a\x9d]|\xe4\xb8\xba|\xe6\x98\xaf|u4e3a|u662f|#(?:61|58);|\xe2\x94[\x82\x83]|\xe2\x95\x91)"
# It begins with a character that is not a letter, so that `tokens_per_second` costs Hyperscan nothing.
_PARTED = (
    rf"(?:{_SIGN}|[^\w\n=:]+(?:(?:quot;|#x27;|#3[49];|[0-9;]*m|2[27])[^\w\n=:]*)?{_SIGN}"
    rf"|(?:: ?| )(?:str|string|SecretStr|Optional\[str\])[^\w\n=:]*{_SIGN})"
    r"[^\w\n]*(?:(?:u001b|x1b|033)\[)?(?:[0-9;]+m|quot;|#x27;|#3[49];|2[27])?[^\w\n]*"
)
_LOT = r"\w[\w.~+/=%@!#$^*-]"
_ALPHABETS = {4: "[A-Za-z0-9][A-Za-z0-9]", 5: "[0-9a-f][0-9a-f]"}  # by doubt
# What a pattern of the file can refer to, besides the lists of words.
_PIECES = {
    "apart": APART,
    "outside": _OUTSIDE,
    "marks": _MARKS,
    "opens": OPENS,
    "options": r"[^\n|;&]*[ \t\"']",  # text that may be between a command and its option
    "next": r"[\"']?,?[ \t]",  # separators of two words of a command, or of two members of a list
    "quote": r"(?:[\"']|&#x27;|&#39;|&quot;)",
    "escaped": r"(?:\\{0,4}[\"']|&#x27;|&#39;|&quot;)",  # a quote, also inside another string
    # After a name in XML: the tag of its value, on the same line or the next.
    "value_below": (
        r"(?:<|&lt;)/name(?:>|&gt;)(?:[ \t\r]{0,4}\n[^\n<&]{0,120}|\\{1,8}[nr][^\n<&]{0,40})?(?:<|&lt;)value(?:>|&gt;)"
    ),
}
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Form:
    """A secret that is recognized by how it begins, whatever comes before it."""

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
    """A secret that is recognized by the text before it, which stays."""

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
    stage: str = ""  # of a name with an assignment: what may be between it and its value

    @property
    def pattern(self) -> str:
        """Returns the pattern for Hyperscan. It ends after the first `least` bytes of a random value, one byte after a
        name of another kind, or where the value or its quote begins."""
        lot = f"{_ALPHABETS.get(self.doubt, _LOT)}{{{self.least - 1}}}"
        if not self.assigned:
            return rf"{self.before}[\"'\\ \t]{{0,12}}{lot}" if self.doubt >= 2 else self.before
        if self.doubt < 2:
            return rf"(?i)(?:{self.before})(?:[_-]?{self.stage})?[^\w-]"
        return rf"(?i)(?:(?:{self.before})(?:{_PARTED})|-[\w.-]*(?:{self.before})[\"',]{{0,2}}[ \t][\"']?){lot}"


@dataclass(frozen=True, slots=True)
class SecretKinds:
    """The content of the file. `openings` are patterns by name. `words` maps each list to a pattern for any of its
    words."""

    forms: tuple[Form, ...]
    names: tuple[Named, ...]
    openings: dict[str, str]
    words: dict[str, str]


def keep_parsed(folder: Path) -> None:
    """Sets the folder for the parsed file, because parsing takes 20 ms. Must be called before the first use."""
    global _kept_in  # the parsed file is shared by the whole process
    _kept_in = folder


@cache
def secret_kinds() -> SecretKinds:
    """Returns the content of the file, with its references filled in."""
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
    """Returns a pattern for any word of one of the file's lists."""
    return secret_kinds().words[name].encode()


def _content() -> dict[str, Any]:
    text = _FILE.read_bytes()
    kept = _kept_in and _kept_in / f"secrets-{hashlib.sha256(text).hexdigest()[:32]}.json"
    if kept:
        try:
            return json.loads(disk_cache.read(kept))  # type: ignore[no-any-return]
        except (OSError, ValueError):  # not written yet, or damaged: parsed below, and written
            pass
    import yaml  # imported here because a start with the parsed file does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast
    content: dict[str, Any] = yaml.load(text, Loader=loader)
    if kept:
        disk_cache.keep(kept, json.dumps(content).encode())
    return content


def _fill_words(name: str, words: dict[str, list[str]], pieces: dict[str, str]) -> str:
    """Returns the pattern for any word of a list and adds it to `pieces`. Lists may refer to others."""
    if name not in pieces:
        for other in _REFERENCE.findall("|".join(words[name])):
            _fill_words(other, words, pieces)
        spelled = [_filled(one, pieces) for word in words[name] for one in _spelled(word)]
        pieces[name] = f"(?:{'|'.join(spelled)})"
    return pieces[name]


def _spelled(word: str) -> list[str]:
    """Returns the word unchanged, and as JSON escapes it."""
    if word.isascii():
        return [word]
    return [word, "".join(char if char.isascii() else rf"\\{{1,8}}u{ord(char):04x}" for char in word)]


def _filled(pattern: str, pieces: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda found: pieces[found[1]], pattern)
