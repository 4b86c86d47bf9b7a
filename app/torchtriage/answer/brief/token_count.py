"""Counts the tokens of a text for a language model, without its tokenizer: a text in, a number that is not too low out.

Byte-pair tokenizers differ, so each kind of character counts as what the least thrifty one in use needs; docs/brief.md
has the rule and what it was measured against.
"""

from __future__ import annotations

import re

from torchtriage.lazy_regex import lazy_regex

TOKENS = 2000  # of a brief
FEWEST, MOST = 300, 100_000  # that can be asked for
_LOWER, _UPPER = 3, 2  # letters of a token
_BLANKS = 8
_IDEOGRAPHS = 4, 3  # as many tokens for as many of them
# A word with a digit in it, a hump of CamelCase, a word in capitals, blanks except the one before a letter, a sign.
_PARTS = lazy_regex(r"[A-Za-z]*\d[A-Za-z\d]*|[A-Z]?[a-z]+|[A-Z]+| +(?![A-Za-z])|[^\sA-Za-z\d]|[^\S ]", re.ASCII)


def token_count(text: str) -> int:
    """-> how many tokens the text takes at most. Two texts with a line end between them take no
    more than the sum of the three."""
    count = ideographs = 0
    for part in _PARTS.findall(text):
        if part.isascii():
            if part.isalpha():
                count += -(-len(part) // (_UPPER if part.isupper() else _LOWER))
            else:
                count += -(-len(part) // _BLANKS) if part[0] == " " else len(part)
        elif "\u2e80" <= part <= "\uffef":
            ideographs += 1
        else:
            count += len(part.encode("utf-8", "replace"))
    return count - (-ideographs * _IDEOGRAPHS[0] // _IDEOGRAPHS[1])
