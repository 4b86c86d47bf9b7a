"""Masks the parts of a message that differ between jobs: numbers, paths and addresses; for fingerprints also hosts and
values.

Every pattern runs in linear time: no part of it can give back characters that the next part could match.
"""

from __future__ import annotations

from functools import lru_cache

from torchtriage.lazy_regex import lazy_regex

# Order matters: longer forms come before the forms that they contain. A text can match a form only if it contains one
# of the literals before it. Finding these takes a tenth of the time.
_MASKS = (
    ("[redacted]", ("[redacted:",), lazy_regex(r"\[redacted:[a-z0-9-]{1,40}\]")),  # as in logs stored by older releases
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
# The parts that still differ between jobs after masking. Order matters here too.
_DOMAINS = "local|internal|lan|com|net|org|edu"
_NUMBERED = "node|host|rank|gpu|worker|shard|step|epoch|iter|batch|job|part|layer|user"
_JOB_TRACES = (
    # connect to [gpu-3.rack2]:29500, gpu-3:29500, dgx01:29500; not cuda:0
    (
        "<host>",
        lazy_regex(r"\[[A-Za-z][\w.<>-]*\]:<num>|\b(?<![.-])[A-Za-z]\w*(?:(?<=\d)|(?:[.-]+\w+|[.-]*<num>)+):<num>"),
    ),
    ("<host>", lazy_regex(rf"\b(?<![.-])[A-Za-z][\w-]*(?:<num>[\w-]*)?(?:\.[\w-]+)*\.(?:{_DOMAINS})\b")),
    # node12, rank_3, img_00123; not float16 and conv2d, which are part of the failure
    (r"\1<num>", lazy_regex(rf"(?i)(?<![a-z])({_NUMBERED})[_-]?\d+\b")),
    ("<num>", lazy_regex(r"\d{4,}")),
    # 'img_7.jpg', "runs/ann/last": a quoted value with a number or path differs between jobs; a quoted word does not.
    ("<value>", lazy_regex(r"'[^'\"]*?[\d<>/][^'\"]*'|\"[^'\"]*?[\d<>/][^'\"]*\"")),
    # The number of items in a list differs too.
    (r"\1", lazy_regex(r"(<num>|<shape>|<value>)(?:\s*[,x×]\s*\1)+")),
)
_MAX_LENGTH = 1000  # characters of a message that are used


@lru_cache(maxsize=4096)
def mask(text: str) -> str:
    """Returns `text` with the parts that differ between jobs replaced by names in angle brackets."""
    for name, literals, pattern in _MASKS:
        for literal in literals:
            if literal in text:
                text = pattern.sub(name, text)
                break
    return text


def mask_all(text: str) -> str:
    """Returns `mask(text)`, with hosts, numbered names and quoted values also replaced. The result is the same in every
    job."""
    text = mask(text[:_MAX_LENGTH])
    for name, pattern in _JOB_TRACES:
        text = pattern.sub(name, text)
    return " ".join(text.split())
