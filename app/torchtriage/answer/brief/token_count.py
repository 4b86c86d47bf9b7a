"""Estimates how many tokens a language model needs for a text, without its tokenizer. The estimate is never too low.

Byte-pair tokenizers differ, so each kind of character is counted at the rate of the least efficient common tokenizer.
docs/brief.md describes the rule and the measurements.
"""

from __future__ import annotations

import re

from torchtriage.lazy_regex import lazy_regex

TOKENS = 2000  # the default size of a brief
MIN_TOKENS, MAX_TOKENS = 300, 100_000  # the limits of what a caller can request
_LOWER, _UPPER = 3, 2  # letters per token
_BLANKS = 8
_IDEOGRAPHS = 4, 3  # this many tokens for this many ideographs
# A word with a digit, a part of a CamelCase word, a word in capitals, blanks except the one before a letter, or a sign.
_PARTS = lazy_regex(r"[A-Za-z]*\d[A-Za-z\d]*|[A-Z]?[a-z]+|[A-Z]+| +(?![A-Za-z])|[^\sA-Za-z\d]|[^\S ]", re.ASCII)


def token_count(text: str) -> int:
    """Returns an upper limit of the tokens in the text. Joining two texts with a line end never needs more tokens than
    the sum of the three parts."""
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
