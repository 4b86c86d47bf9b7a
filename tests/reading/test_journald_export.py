from torchtriage.domain.line import Position
from torchtriage.reading.blocks import blocks
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin
from torchtriage.reading.unwrap import unwrap
from torchtriage.reading.unwrap.journald_export import entries

TRACE = (
    "Traceback (most recent call last):\n  File \"/job/train.py\", line 3, in <module>\n    main()\nKeyError: 'Größe'"
)


def sized(text: str) -> bytes:
    """Returns a field as the export writes it where a value has line feeds: its size in 8 bytes, the lowest first."""
    data = text.encode()
    return b"MESSAGE\n" + len(data).to_bytes(8, "little") + data + b"\n"


def entry(message: bytes, at: int) -> bytes:
    return b"__CURSOR=s=1;i=%d\n__REALTIME_TIMESTAMP=177762600%d000000\n_HOSTNAME=gpu-7\n%b\n" % (at, at, message)


def test_a_message_with_line_feeds_is_whole() -> None:
    content = entry(b"MESSAGE=step 1\n", 1) + entry(sized(TRACE), 2) + entry(b"MESSAGE=bye\n", 3)
    found = unwrap(blocks(iter((content,)), "log"))
    kept = enumerate(b"".join(found.blocks).removesuffix(b"\n").split(b"\n"), 1)
    read = [
        line
        for many in lines(kept, FileOrigin(None), Position(1, 0), found.numbers, not found.rewritten)
        for line in many
    ]
    assert [line.text for line in read] == ["step 1", *TRACE.split("\n"), "bye"]
    assert {line.host for line in read} == {"gpu-7"}
    assert [line.number for line in read] == [4, 9, 9, 9, 9, 18]
    assert (read[0].time or "")[:16] == "2026-05-01T09:00"


def test_what_a_verbose_message_continues_with_belongs_to_it() -> None:
    content = (
        b"Fri 2026-05-01 09:00:00.123456 UTC [s=1;i=1;b=2]\n    _PID=41\n    MESSAGE=one\n            two\n"
        b"Fri 2026-05-01 09:00:01.123456 UTC [s=1;i=2;b=2]\n    MESSAGE=three\n"
    )
    assert [(number, fields["MESSAGE"]) for number, fields in entries(content)] == [(3, "one\ntwo"), (6, "three")]


def test_a_size_beyond_the_end_of_the_file_takes_what_is_there() -> None:
    cut = entry(sized(TRACE), 2)[:-40]
    assert [fields["MESSAGE"] for _, fields in entries(cut)] == [TRACE.encode()[:-38].decode()]


def test_entries_without_a_message_say_nothing() -> None:
    assert list(entries(b"__CURSOR=s=1\nPRIORITY=6\n\n")) == []


def test_a_broken_character_in_a_time_is_not_a_failure() -> None:
    content = b"Fri 2026-05-01 09:00:00.12\xd5 UTC [s=1;i=1;b=2]\n    MESSAGE=one\n"
    assert [fields["MESSAGE"] for _, fields in entries(content)] == ["one"]
