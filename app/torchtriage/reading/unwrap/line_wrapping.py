"""Joins lines that a terminal, mail or editor broke, between words or at one width. Returns the original lines, each
with the line number of its first piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.margins_and_markup import without_margins
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoder, Head, Rejoin, from_layout

_MIN_COUNT = 3  # lines of the full width
_MIN_WIDTH, _MAX_WIDTH = 60, 260  # characters of lines that were cut at one width
_MAX_WIDTH_BETWEEN_WORDS = 110
_UNUSUAL = 0.6  # share of the lines below full ones that begin like no other line
_BOX_CHARS, _BORDERS = "=*_+─#. -", "|│╮╯"  # ends of lines whose width is intended
_FIRST = 20  # lines of the full width that decide for most files
_KIND, _KINDS = 40, 2  # characters that distinguish kinds of lines, and the fewest kinds that are cut
_OFTEN = 3  # number of lines that begin alike and continue no other; a further such line may continue none either
LINE_BEGINS = lazy_regex(
    r"\s*(?:\[(?:rank|default)\d|Traceback \(|File \"|\d{4}-\d\d-\d\d|[WEIF]\d{4} \d|[=*-]{8}|[\w.]+(?:Error|Exception)(?::|$)|srun: |slurmstepd: )"
)
_RANK_LABELS = ("[rank", "[default")
_RANK_LABEL_BYTES = tuple(b"\n" + label.encode() for label in _RANK_LABELS)
_REST = lazy_regex(r"[ \da-z.,)\]'/_-](?!\w*: )")  # possible beginnings of a cut-off part; a program's name is not one
_NEAR = 24  # a line broken between words is usually shorter by at most this many characters
_SAMPLE = 240  # lines
_EXACT = 0.8  # share of these lines that have the full width if they were cut inside words
_OFTEN_BETWEEN_WORDS = 4
_FRAME = lazy_regex(r'(?:.*\s)?File "[^"]+", line \d+(?:, in \S+)?$')
_RULES = ("====", "----", "****", "────")  # ends of drawn lines
_EMPTY = lazy_regex(r"\W*$")
_COLUMNS = lazy_regex(r"(?:\S+ {2,}){3}\S")  # a row of a table
_RULE = lazy_regex(r"(?:-{2,} +){2,}-{2,} *$")
_DIGITS = lazy_regex(r"\d+")


def _recognise_between_words(head: Head) -> Decode | None:
    if max(head.lengths, default=0) > 4 * _MAX_WIDTH:
        return None  # a file with a long line was not cut
    longest = max(head.lines[:_MAX_WIDTH], key=len, default=b"")
    if len(longest) > _MAX_WIDTH // 2 and b" " in longest.strip(b"> \t"):
        return None
    width = wrap_width(head.first_texts(_SAMPLE))
    return None if width is None else from_layout(partial(rejoin_words, width=width))


def _recognise_at_one_width(head: Head) -> Decode | None:
    return from_layout(find_cuts(head))


def find_cuts(head: Head) -> Rejoin | None:
    """Returns a function that joins lines cut at one width, or None if the lines were not cut."""
    widest = max(head.lengths, default=0)
    if widest > 4 * _MAX_WIDTH:
        return None
    may_be_cut = widest <= _MAX_WIDTH and head.lengths.count(widest) >= _MIN_COUNT
    if not may_be_cut and all(map(bytes.isascii, head.lines)):
        return None
    width = cut_width(head.texts)
    return None if width is None else partial(rejoin_cut, width=width)


def _recognise_below_rank_labels(head: Head) -> Decode | None:
    if max(head.lengths, default=0) > 4 * _MAX_WIDTH or not any(map(head.sample.__contains__, _RANK_LABEL_BYTES)):
        return None
    width = labelled_width(head.texts)
    return None if width is None else from_layout(partial(rejoin_cut, width=width))


def cut_width(lines: Sequence[str]) -> int | None:
    """Returns the width in characters at which the lines of a file were cut, from its first lines, or None."""
    lengths = list(map(len, lines))
    widest = max(lengths, default=0)
    if not _MIN_WIDTH <= widest <= _MAX_WIDTH or lengths.count(widest) < _MIN_COUNT:
        return None
    full = [at for at, length in enumerate(lengths[:-1]) if length == widest]
    alike = sum(_beginning(lines[at]) == _beginning(lines[at + 1]) for at in full[:_FIRST])
    if alike * 2 > len(full[:_FIRST]):
        return None  # progress lines often have equal widths
    full = [at for at in full if not _is_drawn(lines[at]) and not _are_rows(lines[at], lines[at + 1])]
    # Cut lines are of many kinds. If all are of one kind, their width is intended, whatever is between them.
    if len(full) < _MIN_COUNT or len({_DIGITS.sub("0", lines[at][:_KIND]) for at in full}) < _KINDS:
        return None
    plain = without_margins(lines)
    below = {at + 1 for at in full}
    usual = {_beginning(line) for at, line in enumerate(plain) if at not in below and line.strip()}
    unusual = sum(_beginning(plain[at]) not in usual for at in below if plain[at].strip())
    if all(len(line) == widest for line in lines if line.strip()):
        return None  # they are rows of a table; lines that were cut would leave shorter ends
    return widest if unusual >= _UNUSUAL * len(full) else None


def labelled_width(lines: Sequence[str]) -> int | None:
    """Returns the width in characters at which lines after a rank's label were cut, so that the rest of each is below
    without a label, or None. One such line is enough, because no line of a worker continues without its label."""
    labelled = [at for at, line in enumerate(lines) if line.startswith(_RANK_LABELS)]
    widest = max([len(lines[at]) for at in labelled], default=0)
    if len(labelled) < _MIN_COUNT or not _MIN_WIDTH <= widest <= _MAX_WIDTH:
        return None
    full = [at for at in labelled if len(lines[at]) == widest and at + 1 < len(lines)]
    below = [lines[at + 1] for at in full if not _is_drawn(lines[at])]
    return widest if below and all(_REST.match(line) and len(line) <= widest for line in below) else None


def rejoin_cut(lines: Sequence[str], width: int) -> tuple[list[str], list[int]]:
    """Returns the lines as they were before they were cut at `width`, and the number (from 1) of the first piece of
    each."""
    whole: list[str] = []
    numbers: list[int] = []
    goes_on = False
    plain_lines = without_margins(lines)
    often = Counter(
        _beginning(plain) for plain, above in zip(plain_lines[1:], lines, strict=False) if len(above) != width
    )
    for number, (line, plain) in enumerate(zip(lines, plain_lines, strict=True), 1):
        if (
            goes_on
            and plain.strip()
            and not _are_rows(lines[number - 2], line)
            and not LINE_BEGINS.match(plain)
            and often[_beginning(plain)] < _OFTEN
        ):
            whole[-1] += plain
        else:
            whole.append(line)
            numbers.append(number)
        goes_on = len(line) == width and not _is_drawn(line)
    return whole, numbers


def wrap_width(lines: Sequence[str]) -> int | None:
    """Returns the width in characters at which the lines of a file were broken between words, from its first lines, or
    None."""
    lengths = [len(line) for line in lines[:_SAMPLE] if " " in line.strip("> \t")]
    widest = max(lengths, default=0)
    full = sum(length > widest - _NEAR for length in lengths)
    if not _MIN_WIDTH <= widest <= _MAX_WIDTH_BETWEEN_WORDS or full < _MIN_COUNT:
        return None
    plain = without_margins(lines[:_SAMPLE])
    width = max((len(line.rstrip()) for line in plain if " " in line.strip()), default=0)
    below = [at + 1 for at in range(len(plain) - 1) if _goes_on(plain[at], plain[at + 1], width)]
    exact = sum(len(plain[at - 1]) == width for at in below)
    if len(below) < _MIN_COUNT or exact > _EXACT * len(below):
        return None
    continued = set(below)
    usual = {_beginning(line.lstrip()) for at, line in enumerate(plain) if at not in continued}
    unusual = sum(_beginning(plain[at].lstrip()) not in usual for at in below)
    return width if unusual >= _UNUSUAL * len(below) else None


def rejoin_words(lines: Sequence[str], width: int) -> tuple[list[str], list[int]]:
    """Returns the lines as they were before they were broken at `width`, and the number (from 1) of the first piece of
    each."""
    whole: list[str] = []
    numbers: list[int] = []
    above = ""
    plain_lines = without_margins(lines)
    # Words that often begin a line although the line above had room for them begin a line here too.
    often = Counter(_beginning(plain) for above, plain in pairwise(plain_lines) if not _goes_on(above, plain, width))
    for number, (line, plain) in enumerate(zip(lines, plain_lines, strict=True), 1):
        if whole and _goes_on(above, plain, width) and often[_beginning(plain)] < _OFTEN_BETWEEN_WORDS:
            rest = plain.strip() if _is_cut_in_word(above, plain, width) else f" {plain.strip()}"
            whole[-1] = whole[-1].rstrip() + rest
        else:
            whole.append(line)
            numbers.append(number)
        above = plain
    return whole, numbers


def _is_cut_in_word(line: str, below: str, width: int) -> bool:
    """Returns whether a word that is too long for a line was cut, usually a path."""
    return len(line) == width and len(line.rpartition(" ")[2]) + len(below.strip().partition(" ")[0]) > width // 2


def _goes_on(line: str, below: str, width: int) -> bool:
    """Returns whether the line below continues a line, because its first word had no room there."""
    word, _, _ = below.lstrip().partition(" ")
    if not word or len(line.rstrip()) + 1 + len(word) <= width or len(line.strip()) < 8:
        return False
    if _are_rows(line, below) or LINE_BEGINS.match(below) or line.endswith(_RULES) or below.endswith(_RULES):
        return False
    return not (_EMPTY.match(line) or _EMPTY.match(below) or ('File "' in line and _FRAME.match(line.rstrip())))


def _beginning(line: str) -> str:
    """Returns the first characters of a line, which distinguish kinds of lines. All digits are equal."""
    return _DIGITS.sub("0", line[:12])[:5]


def _are_rows(line: str, below: str) -> bool:
    """Returns whether both lines are rows of one table, or one is the rule between its rows."""
    return all(_COLUMNS.search(row) or _RULE.match(row) for row in (line, below))


def _is_drawn(line: str) -> bool:
    last = line[-1]
    return last in _BORDERS or (last in _BOX_CHARS and line.endswith(4 * last))


BETWEEN_WORDS = Decoder("lines wrapped between words", _recognise_between_words, compares_lines=True)
AT_ONE_WIDTH = Decoder("lines cut at one width", _recognise_at_one_width, compares_lines=True)
BELOW_RANK_LABELS = Decoder("lines cut behind rank labels", _recognise_below_rank_labels, compares_lines=True)
