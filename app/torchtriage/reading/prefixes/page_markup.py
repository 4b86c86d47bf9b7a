"""Lines as pages, mails and editors set them: entities and tags of HTML, blanks that do not break, curly quotes.

A file's first lines in, whether it is set like that out; a line in, the line as its writer printed it out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_FEWEST = 2  # lines that show it
_SET = re.compile(
    r"&(?:quot|lt|gt|nbsp|apos|#39|#x27|#34|#x2[27]);|</?(?:p|div|span|td|tr|li|pre|code)\b[^<>]{0,200}>|<br ?/?>"
    r"|[\u00a0\u200b\u3000]{2}|\w[\u00a0]\w|^[\u200b\ufeff]|File [“”„]|[\ufb00-\ufb04]|(?:Error|Exception)：|\]：|，line \d|(?:Error|Exception): [^\n]{0,200}[“‘]"
)
_TAG = re.compile(
    r"</?(?:p|div|span|td|tr|th|table|tbody|li|ul|ol|pre|code|b|i|em|strong|font|html|body|br)\b[^<>]{0,200}>"
)
_PLAIN = str.maketrans({"\u00a0": " ", "\u3000": " ", "\u2002": " ", "\u2003": " ", "\u200b": "", "\ufeff": "", "\u2060": "",
                        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "：": ": ", "，": ",", "（": "(", "）": ")",
                        "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "‚": "'"})  # fmt: skip


def is_set(lines: Sequence[str]) -> bool:
    """-> whether a file, of which these are the first lines, went through a page, a mail or an editor."""
    every = "\n".join(lines)
    if every.isascii() and "&" not in every and "<" not in every:
        return False
    shown = 0
    for line in lines:
        if (not line.isascii() or "&" in line or "<" in line) and _SET.search(line):
            shown += 1
            if shown >= _FEWEST:
                return True
    return False


def printed(line: str) -> str:
    """-> the line as it was before it was set."""
    if "<" in line:
        line = _TAG.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    return line if line.isascii() else line.translate(_PLAIN)
