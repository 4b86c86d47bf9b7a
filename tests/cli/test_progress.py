"""The progress line, on a terminal that a test holds and with a clock that it moves."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from tests.logs import BANNER, text
from torchtriage.cli.main import main
from torchtriage.cli.progress import Progress, counted, plain_size
from torchtriage.reading.sources import LogFile, Run, open_path


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def run_of(*pieces: bytes) -> Run:
    return Run("run.log", lambda: iter((LogFile("run.log", lambda: iter(pieces)),)))


def test_the_line_appears_after_two_seconds_and_goes_at_the_end() -> None:
    terminal, clock = Terminal(), Clock()
    with Progress(False, terminal, clock) as progress:
        progress.show("one")
        clock.now += 1.9
        progress.show("two")
        assert terminal.getvalue() == ""
        clock.now += 0.2
        progress.show("three")
        progress.show("four")  # too soon after
        assert terminal.getvalue() == "\r\x1b[Kthree"
        clock.now += 0.3
        progress.show("five")
    assert terminal.getvalue() == "\r\x1b[Kthree\r\x1b[Kfive\r\x1b[K"


@pytest.mark.parametrize(("quiet", "stream"), [(True, Terminal()), (False, StringIO())], ids=["quiet", "no terminal"])
def test_nothing_is_written(quiet: bool, stream: StringIO) -> None:
    clock = Clock()
    with Progress(quiet, stream, clock) as progress:
        clock.now += 60
        progress.show("one")
    assert stream.getvalue() == ""


def test_bytes_are_counted_as_they_are_read() -> None:
    terminal, clock = Terminal(), Clock()
    progress = Progress(False, terminal, clock)
    clock.now += 3
    run = counted(run_of(bytes(4_000_000), bytes(8_000_000)), progress, 12_000_000)
    for file in run.files():
        for piece in file.chunks():
            clock.now += 1
            assert piece.count(0) == len(piece)
    assert terminal.getvalue() == "\r\x1b[Krun.log: 4 MB of 12 MB read\r\x1b[Krun.log: 12 MB of 12 MB read"


def test_the_total_is_known_of_plain_files_only(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(b"12345\n")
    (folder / "b.log").write_bytes(b"123\n")
    assert plain_size(folder / "a.log", open_path(folder / "a.log")) == 6
    assert plain_size(folder, open_path(folder)) == 10
    (folder / "c.log.gz").write_bytes(b"\x1f\x8b")
    assert plain_size(folder, open_path(folder)) is None


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["-q"]])
def test_a_triage_that_is_no_terminal_writes_no_progress(
    quiet: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.log").write_bytes(text(BANNER, "training finished"))
    assert main(["triage", *quiet, str(tmp_path / "run.log")]) == 0
    assert capsys.readouterr().err == ""
