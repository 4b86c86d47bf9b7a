"""Masks what differs from job to job in a message: numbers, paths, addresses; for fingerprints hosts and values, too.

Every pattern is linear: no part of one can give back what the next could match.
"""

from __future__ import annotations

from functools import lru_cache

from torchtriage.lazy_regex import lazy_regex

# Order matters: the longer form comes before the parts it is made of. A text that holds a form holds one of the
# literals before it, which are found in a tenth of the time.
_MASKS = (
    ("[redacted]", ("[redacted:",), lazy_regex(r"\[redacted:[a-z0-9-]{1,40}\]")),  # as logs of older releases hold it
    ("<time>", ("-",), lazy_regex(r"\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?")),
    ("<uuid>", ("-",), lazy_regex(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")),
    ("<url>", ("://",), lazy_regex(r"\b[a-z][a-z0-9+]{1,8}://[^\s'\"<>)\]]+")),
    ("<addr>", (".", "]:"), lazy_regex(r"\[[0-9a-fA-F:.]+\]:\d+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:<\d+>)?\b")),
    ("<hex>", ("",), lazy_regex(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")),
    (
        "<path>",
        ("/", "\\"),
        lazy_regex(
            r"(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.+@%=~-]+(?:[/\\][\w.+@%=~-]+)*/?"
            r"|(?<![\w.+-])(?=\w)[\w.+-]+(?:/[\w.+-]+)+\.\w{1,12}\b"
        ),
    ),
    ("<shape>", ("[", "x"), lazy_regex(r"\[\s*+-?\d++(?:\s*+[,x]\s*+-?\d++)*+\s*+(?:,\s*+)?\]|\b\d+(?:x\d+)+\b")),
    ("<num>", ("",), lazy_regex(r"(?<![A-Za-z_\d])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:\s?(?:[KMGT]i?B|ms|GiB|MiB)\b)?")),
)
# What remains of one job in a masked message; again in this order.
_DOMAINS = "local|internal|lan|com|net|org|edu"
_NUMBERED = "node|host|rank|gpu|worker|shard|step|epoch|iter|batch|job|part|layer|user"
_JOB_TRACES = (
    # connect to [gpu-3.rack2]:29500, gpu-3:29500, dgx01:29500; not cuda:0
    (
        "<host>",
        lazy_regex(r"\[[A-Za-z][\w.<>-]*\]:<num>|\b(?<![.-])[A-Za-z]\w*(?:(?<=\d)|(?:[.-]+\w+|[.-]*<num>)+):<num>"),
    ),
    ("<host>", lazy_regex(rf"\b(?<![.-])[A-Za-z][\w-]*(?:<num>[\w-]*)?(?:\.[\w-]+)*\.(?:{_DOMAINS})\b")),
    # node12, rank_3, img_00123; float16 and conv2d say what went wrong
    (r"\1<num>", lazy_regex(rf"(?i)(?<![a-z])({_NUMBERED})[_-]?\d+\b")),
    ("<num>", lazy_regex(r"\d{4,}")),
    # 'img_7.jpg', "runs/ann/last": a quoted value with a number or a path in it is one job's own, a word is not.
    ("<value>", lazy_regex(r"'[^'\"]*?[\d<>/][^'\"]*'|\"[^'\"]*?[\d<>/][^'\"]*\"")),
    # How many there are differs as well.
    (r"\1", lazy_regex(r"(<num>|<shape>|<value>)(?:\s*[,x×]\s*\1)+")),
)
_LONGEST = 1000  # characters of a message that count


@lru_cache(maxsize=4096)
def mask(text: str) -> str:
    """-> `text` with what differs from job to job replaced by names in angle brackets."""
    for name, literals, pattern in _MASKS:
        for literal in literals:
            if literal in text:
                text = pattern.sub(name, text)
                break
    return text


def mask_all(text: str) -> str:
    """-> what `mask` leaves, and without hosts, numbered names and quoted values: the same in every job."""
    text = mask(text[:_LONGEST])
    for name, pattern in _JOB_TRACES:
        text = pattern.sub(name, text)
    return " ".join(text.split())
