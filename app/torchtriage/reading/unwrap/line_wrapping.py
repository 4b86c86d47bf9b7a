"""Lines that a terminal, a mail or an editor broke: between words, or at one width. The lines of a file in, those that
were written out, each with the line number of its first piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.margins_and_markup import without_margins
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoder, Head, Rejoin, from_layout

_FEWEST = 3  # lines of the full width
_NARROWEST, _WIDEST = 60, 260  # characters of lines that were cut at one width
_WIDEST_BETWEEN_WORDS = 110
_UNUSUAL = 0.6  # of the lines below those begin as none of the others does
_BOX_CHARS, _BORDERS = "=*_+─#. -", "|│╮╯"  # ends of lines that are as wide as they were meant
_FIRST = 20  # lines of the full width that decide for most files
_KIND, _KINDS = 40, 2  # characters by which kinds of lines differ, and how many are cut at least
_OFTEN = 3  # lines that begin alike and continue none: another one that begins so may continue none either
LINE_BEGINS = lazy_regex(
    r"\s*(?:\[(?:rank|default)\d|Traceback \(|File \"|\d{4}-\d\d-\d\d|[WEIF]\d{4} \d|[=*-]{8}|[\w.]+(?:Error|Exception)(?::|$)|srun: |slurmstepd: )"
)
_RANK_LABELS = ("[rank", "[default")
_RANK_LABEL_BYTES = tuple(b"\n" + label.encode() for label in _RANK_LABELS)
_REST = lazy_regex(r"[ \da-z.,)\]'/_-](?!\w*: )")  # how what was cut off begins: no program's name stands there
_NEAR = 24  # characters that a line broken between words is shorter, at most, most often
_SAMPLE = 240  # lines
_EXACT = 0.8  # of these lines have the full width where they were cut inside words
_OFTEN_BETWEEN_WORDS = 4
_FRAME = lazy_regex(r'(?:.*\s)?File "[^"]+", line \d+(?:, in \S+)?$')
_RULES = ("====", "----", "****", "────")  # what ends a line that is drawn
_EMPTY = lazy_regex(r"\W*$")
_COLUMNS = lazy_regex(r"(?:\S+ {2,}){3}\S")  # a row of a table
_RULE = lazy_regex(r"(?:-{2,} +){2,}-{2,} *$")
_DIGITS = lazy_regex(r"\d+")


def _recognise_between_words(head: Head) -> Decode | None:
    if max(head.lengths, default=0) > 4 * _WIDEST:
        return None  # A file with a long line was not cut.
    longest = max(head.lines[:_WIDEST], key=len, default=b"")
    if len(longest) > _WIDEST // 2 and b" " in longest.strip(b"> \t"):
        return None
    width = wrap_width(head.first_texts(_SAMPLE))
    return None if width is None else from_layout(partial(rejoin_words, width=width))


def _recognise_at_one_width(head: Head) -> Decode | None:
    return from_layout(find_cuts(head))


def find_cuts(head: Head) -> Rejoin | None:
    """-> what joins lines that were cut at one width; None where a file's were not."""
    widest = max(head.lengths, default=0)
    if widest > 4 * _WIDEST:
        return None
    may_be_cut = widest <= _WIDEST and head.lengths.count(widest) >= _FEWEST
    if not may_be_cut and all(map(bytes.isascii, head.lines)):
        return None
    width = cut_width(head.texts)
    return None if width is None else partial(rejoin_cut, width=width)


def _recognise_below_rank_labels(head: Head) -> Decode | None:
    if max(head.lengths, default=0) > 4 * _WIDEST or not any(map(head.sample.__contains__, _RANK_LABEL_BYTES)):
        return None
    width = labelled_width(head.texts)
    return None if width is None else from_layout(partial(rejoin_cut, width=width))


def cut_width(lines: Sequence[str]) -> int | None:
    """-> the width in characters at which the lines of a file were cut, of which these are the first; None where they
    were not."""
    lengths = list(map(len, lines))
    widest = max(lengths, default=0)
    if not _NARROWEST <= widest <= _WIDEST or lengths.count(widest) < _FEWEST:
        return None
    full = [at for at, length in enumerate(lengths[:-1]) if length == widest]
    alike = sum(_beginning(lines[at]) == _beginning(lines[at + 1]) for at in full[:_FIRST])
    if alike * 2 > len(full[:_FIRST]):
        return None  # Lines of progress are often equally wide.
    full = [at for at in full if not _is_drawn(lines[at]) and not _are_rows(lines[at], lines[at + 1])]
    # What was cut are lines of many kinds; of one kind, they are as wide as they were meant, whatever stands between.
    if len(full) < _FEWEST or len({_DIGITS.sub("0", lines[at][:_KIND]) for at in full}) < _KINDS:
        return None
    plain = without_margins(lines)
    below = {at + 1 for at in full}
    usual = {_beginning(line) for at, line in enumerate(plain) if at not in below and line.strip()}
    unusual = sum(_beginning(plain[at]) not in usual for at in below if plain[at].strip())
    if all(len(line) == widest for line in lines if line.strip()):
        return None  # They are the rows of a table: of what was cut, shorter ends remain.
    return widest if unusual >= _UNUSUAL * len(full) else None


def labelled_width(lines: Sequence[str]) -> int | None:
    """-> the width in characters at which lines behind a rank's label were cut, the rest of each below it without one;
    None where none was. A single one will do, as no worker's line goes on without its label."""
    labelled = [at for at, line in enumerate(lines) if line.startswith(_RANK_LABELS)]
    widest = max([len(lines[at]) for at in labelled], default=0)
    if len(labelled) < _FEWEST or not _NARROWEST <= widest <= _WIDEST:
        return None
    full = [at for at in labelled if len(lines[at]) == widest and at + 1 < len(lines)]
    below = [lines[at + 1] for at in full if not _is_drawn(lines[at])]
    return widest if below and all(_REST.match(line) and len(line) <= widest for line in below) else None


def rejoin_cut(lines: Sequence[str], width: int) -> tuple[list[str], list[int]]:
    """-> the lines as they were before they were cut at `width`, and the number from 1 of each one's first piece."""
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
    """-> the width in characters at which the lines of a file were broken between words, of which these are the first;
    None where they were not."""
    lengths = [len(line) for line in lines[:_SAMPLE] if " " in line.strip("> \t")]
    widest = max(lengths, default=0)
    full = sum(length > widest - _NEAR for length in lengths)
    if not _NARROWEST <= widest <= _WIDEST_BETWEEN_WORDS or full < _FEWEST:
        return None
    plain = without_margins(lines[:_SAMPLE])
    width = max((len(line.rstrip()) for line in plain if " " in line.strip()), default=0)
    below = [at + 1 for at in range(len(plain) - 1) if _goes_on(plain[at], plain[at + 1], width)]
    exact = sum(len(plain[at - 1]) == width for at in below)
    if len(below) < _FEWEST or exact > _EXACT * len(below):
        return None
    continued = set(below)
    usual = {_beginning(line.lstrip()) for at, line in enumerate(plain) if at not in continued}
    unusual = sum(_beginning(plain[at].lstrip()) not in usual for at in below)
    return width if unusual >= _UNUSUAL * len(below) else None


def rejoin_words(lines: Sequence[str], width: int) -> tuple[list[str], list[int]]:
    """-> the lines as they were before they were broken at `width`, and the number from 1 of each one's first piece."""
    whole: list[str] = []
    numbers: list[int] = []
    above = ""
    plain_lines = without_margins(lines)
    # What often begins a line where the one above had room for it begins one here, too.
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
    """-> whether a word was cut that is too long for a line: a path, most often."""
    return len(line) == width and len(line.rpartition(" ")[2]) + len(below.strip().partition(" ")[0]) > width // 2


def _goes_on(line: str, below: str, width: int) -> bool:
    """-> whether the line below one goes on with it: its first word had no room there."""
    word, _, _ = below.lstrip().partition(" ")
    if not word or len(line.rstrip()) + 1 + len(word) <= width or len(line.strip()) < 8:
        return False
    if _are_rows(line, below) or LINE_BEGINS.match(below) or line.endswith(_RULES) or below.endswith(_RULES):
        return False
    return not (_EMPTY.match(line) or _EMPTY.match(below) or ('File "' in line and _FRAME.match(line.rstrip())))


def _beginning(line: str) -> str:
    """-> the first characters of a line, which tell kinds of lines apart; all digits alike."""
    return _DIGITS.sub("0", line[:12])[:5]


def _are_rows(line: str, below: str) -> bool:
    """-> whether both lines are rows of one table, or one of them is the rule between its rows."""
    return all(_COLUMNS.search(row) or _RULE.match(row) for row in (line, below))


def _is_drawn(line: str) -> bool:
    last = line[-1]
    return last in _BORDERS or (last in _BOX_CHARS and line.endswith(4 * last))


BETWEEN_WORDS = Decoder("lines wrapped between words", _recognise_between_words, compares_lines=True)
AT_ONE_WIDTH = Decoder("lines cut at one width", _recognise_at_one_width, compares_lines=True)
BELOW_RANK_LABELS = Decoder("lines cut behind rank labels", _recognise_below_rank_labels, compares_lines=True)
