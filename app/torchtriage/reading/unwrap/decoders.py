"""The decoders of whole files, in the order in which they are tried, and the loop that applies them, also to the result
of another.

Turns the blocks of a file into blocks of its log as it was written. A file that no decoder recognizes is returned
unchanged.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from torchtriage.reading.blocks import PartialBlock
from torchtriage.reading.unwrap import (
    collector_output,
    csv_tables,
    html_pages,
    interleaved_lines,
    journald_export,
    json_documents,
    line_endings,
    line_wrapping,
    newest_first,
    number_columns,
    quoted_strings,
    rich_columns,
    tmux_panes,
    transport_encoding,
    wrapped_behind_labels,
)
from torchtriage.reading.unwrap.decoder_interface import Decoded, Decoder, Head, too_large

_SAMPLE = 64 << 10  # bytes
_MAX_DEPTH = 4  # nested decoders

# Order matters: the first decoder that recognizes a file decodes it.
DECODERS: tuple[Decoder, ...] = (
    # Formats of records, recognized by their first bytes. JSON is first, because its strings may contain any of the
    # others.
    json_documents.DECODER,
    journald_export.DECODER,
    collector_output.GCLOUD_YAML,
    collector_output.FLUENT_BIT,
    csv_tables.DECODER,
    # A log in quotes has hardly any line feeds, so it has no lines to compare.
    quoted_strings.DECODER,
    # The following decoders compare lines. Order is checked before line ends, because a reversed export keeps its line
    # ends.
    newest_first.DECODER,
    # Separators of lines, and texts that were inserted between them.
    line_endings.OTHER_LINE_ENDS,
    html_pages.DECODER,
    transport_encoding.QUOTED_PRINTABLE,
    line_endings.LOST_LINE_FEEDS,
    interleaved_lines.OTHERS_LINES,
    number_columns.DECODER,
    # One text that contains the whole log.
    transport_encoding.TEAMCITY,
    transport_encoding.BASE64,
    transport_encoding.URL,
    # Layouts of lines. Panes and columns are separated before cut lines are joined. Lines wrapped between words come
    # before lines cut at one width, because their longest lines may have equal widths by chance.
    interleaved_lines.BLANK_LINES,
    tmux_panes.DECODER,
    rich_columns.DECODER,
    line_wrapping.BETWEEN_WORDS,
    line_wrapping.AT_ONE_WIDTH,
    line_wrapping.BELOW_RANK_LABELS,
    # Last, because it looks for the layouts above after a collector's label.
    wrapped_behind_labels.DECODER,
)


class Unwrapped(NamedTuple):
    """The result of all decoders that were applied. `by_lines` is true if the outermost one recognized the layout or
    order of lines."""

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None
    by_lines: bool = False


def unwrap(blocks: Iterable[bytes], compare_lines: bool = True) -> Unwrapped:
    """Returns the blocks of one file as its log was written. Raises the errors of reading `blocks`.

    If `compare_lines` is true, decoders that compare the layout or order of lines are tried too, which takes longer.
    """
    decoded, decoder = _decode_once(blocks, None, compare_lines)
    by_lines = decoder is not None and decoder.compares_lines
    for _ in range(_MAX_DEPTH):
        numbers = decoded.numbers
        if numbers is None:
            break
        inner, decoder = _decode_once(decoded.blocks, decoder, compare_lines=True)
        if inner.numbers is None:
            decoded = decoded._replace(blocks=inner.blocks)
            break
        decoded = _inside(decoded, numbers, inner, inner.numbers)
    return Unwrapped(*decoded, by_lines=by_lines)


def _inside(outer: Decoded, outer_numbers: Sequence[int], inner: Decoded, inner_numbers: Sequence[int]) -> Decoded:
    """Combines two decodings, of which `inner` decoded the result of `outer`. Returns the inner lines with their
    numbers in the file."""
    numbers = array("q", (outer_numbers[number - 1] for number in inner_numbers))
    return Decoded(inner.blocks, numbers, outer.rewritten or inner.rewritten, outer.warning or inner.warning)


def _decode_once(
    blocks: Iterable[bytes], before: Decoder | None, compare_lines: bool
) -> tuple[Decoded, Decoder | None]:
    """Returns the blocks decoded by the first decoder that recognizes them, and that decoder or None. `before` is the
    decoder that produced the blocks."""
    rest = iter(blocks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (block := next(rest, b"")):
        read.append(block)
        size += len(block)
    head = Head((read[0] if len(read) == 1 else b"".join(read))[:_SAMPLE], whole=size < _SAMPLE)
    for decoder in DECODERS if compare_lines else _BY_FIRST_BYTES:
        decode = decoder.recognise(head)
        if decode is not None:
            break
    else:
        return Decoded(chain(read, rest)), None
    if decoder is before and decoder.once:
        return Decoded(chain(read, rest)), None
    for block in rest:
        read.append(block)
        size += len(block)
        if size > decoder.largest:
            return Decoded(chain(read, rest), warning=too_large(decoder.name, decoder.largest)), None
    contents = [b"".join(memoryview(block)[:-1] if isinstance(block, PartialBlock) else block for block in read)]
    read.clear()
    return decode(contents.pop()), decoder  # frees the memory for the result


_BY_FIRST_BYTES = tuple(decoder for decoder in DECODERS if not decoder.compares_lines)
