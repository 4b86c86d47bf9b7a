import pytest

from tests.logs import text, traceback
from torchtriage.reading.hit_selection import BRIEFLY, MAX_HITS, MAX_SIMILAR, HitSelection
from torchtriage.reading.scan import Scanner
from torchtriage.reading.windows import Windows

HEAD, ERROR = 0, 1
SCANNER = Scanner(lambda: [rb"Traceback \(most recent", rb"\w+Error: "])
FRAMES = [(f"/env/torch/part{n}.py", n, f"call_{n}", "return self._call(*args)") for n in range(1, 40)]


def hits(wide: frozenset[int] = frozenset({HEAD})) -> HitSelection:
    return HitSelection(SCANNER, wide, lambda index, line: True)


def kept(data: bytes, blocks: int = 1) -> list[str]:
    windows = Windows(SCANNER, frozenset({HEAD}), lambda index, line: True)
    lines = data.splitlines(keepends=True)
    size = len(lines) // blocks + 1
    found = windows.read(b"".join(lines[start : start + size]) for start in range(0, len(lines), size))
    return [line for _, piece in found for line in piece.decode().removesuffix("\n").split("\n")]


def many(ranks: int, frames: list[tuple[str, int, str, str]] = FRAMES) -> bytes:
    return text(*(traceback("WidgetError: spindle", frames, f"[rank{rank}]: ") for rank in range(ranks)))


def test_a_line_of_many_patterns_is_one_hit() -> None:
    (only,) = hits().select(b"step 1\nTraceback (most recent KeyError: x\nstep 2\n")
    assert (only.start, only.end, only.wide) == (7, 41, True)


def test_frames_that_were_read_before_are_passed_over_and_every_last_line_is_kept() -> None:
    lines = kept(many(200), blocks=3)
    assert {line for line in lines if "WidgetError" in line} == {
        f"[rank{rank}]: WidgetError: spindle" for rank in range(200)
    }
    assert sum('File "' in line for line in lines) < 200 * len(FRAMES) / 5


@pytest.mark.parametrize("label", ["", "[default3]:", "12: "])
def test_frames_are_known_again_after_any_label(label: str) -> None:
    data = text(*(traceback("WidgetError: spindle", FRAMES, label) for _ in range(9)))
    assert [bool(hit.frames_end) for hit in hits().select(data) if hit.wide] == [False] + [True] * 8


def test_one_frame_more_is_another_traceback() -> None:
    longer = [*FRAMES, ("/job/train.py", 7, "main", "step()")]
    data = many(6) + text(traceback("WidgetError: spindle", longer, "[rank9]: "))
    *_, last = (hit for hit in hits().select(data) if hit.wide)
    assert last.frames_end == 0


def test_a_launchers_own_traceback_is_always_read() -> None:
    data = many(9, [("/env/torch/distributed/launcher/api.py", 7, "launch_agent", "raise"), *FRAMES])
    assert not any(hit.frames_end for hit in hits().select(data))


def test_alike_lines_end_but_each_rank_is_heard() -> None:
    chosen = hits()
    same = b"".join(b"[rank3]: WidgetError: %d\n" % number for number in range(MAX_SIMILAR + 50))
    found = list(chosen.select(same))
    assert (len(found), chosen.skipped) == (MAX_SIMILAR, 50)
    assert [hit.brief for hit in found].index(True) == BRIEFLY
    assert len(list(chosen.select(b"".join(b"[rank%d]: WidgetError: 1\n" % rank for rank in range(20))))) == 19


def test_lines_that_differ_end_at_the_patterns_limit_and_another_pattern_still_hits() -> None:
    chosen = hits(frozenset())
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = (a + b + c for a in letters for b in letters for c in letters)
    data = text(*(f"WidgetError: {word}" for word, _ in zip(words, range(MAX_HITS + 100), strict=False)))
    assert len(list(chosen.select(data))) == MAX_HITS
    assert chosen.skipped == 100
    assert len(list(chosen.select(b"WidgetError: new: Traceback (most recent call last):\n"))) == 1


def test_a_pattern_that_never_stops_is_taken_out_of_the_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtriage.reading.hit_selection.MAX_MATCHES", 100)
    monkeypatch.setattr("torchtriage.reading.hit_selection.MAX_IGNORED", 200)
    chosen = hits()
    for _ in range(6):
        list(chosen.select(b"WidgetError: x\n" * 100))
    assert chosen.scanner.ends(b"WidgetError: x\n") == ([], 0)
    assert len(list(chosen.select(b"WidgetError: x\nTraceback (most recent call last):\n"))) == 1


def boxed_traceback(label: str, frames: int) -> str:
    rows = [f"/env/torch/part{number}.py:{number} in call_{number}" for number in range(frames)]
    box = ["╭─── Traceback (most recent call last) ───╮", *(f"│ {row:<40}│" for row in rows), f"╰{'─' * 41}╯"]
    return "".join(f"{label}{line}\n" for line in [*box, "WidgetError: spindle"])


@pytest.mark.parametrize("label", ["", "[rank7]: "])
def test_the_frames_in_a_box_are_known_again_up_to_its_end(label: str) -> None:
    data = (boxed_traceback(label, 40) * 6 + boxed_traceback(label, 41)).encode()
    *alike, other = (hit for hit in hits().select(data) if hit.wide)
    assert [bool(hit.frames_end) for hit in alike] == [False] + [True] * 5
    assert data[alike[-1].frames_end :].decode().startswith(f"{label}╰")
    assert other.frames_end == 0
