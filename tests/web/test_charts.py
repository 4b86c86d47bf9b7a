"""Charts: a part keeps its colour whatever else is shown."""

from torchtriage.domain.dashboard import OTHERS, UNKNOWN, Chart
from torchtriage.web.pages.charts import drawn

_TIMES = ("2026-01-01", "2026-01-02")


def _kinds(*parts: str) -> dict[str, str]:
    return drawn(Chart(_TIMES, {part: (at, 1) for at, part in enumerate(parts)})).kinds


def test_a_part_keeps_its_colour_from_one_range_to_the_next() -> None:
    assert _kinds("cuda", "nccl", "slurm")["nccl"] == _kinds("nccl", "cuda")["nccl"] == _kinds("nccl")["nccl"]


def test_no_two_parts_share_a_colour_while_there_are_enough() -> None:
    kinds = _kinds("cuda", "nccl", "slurm", "data", "process", "usage", "storage", OTHERS, UNKNOWN)
    assert len(set(kinds.values())) == 9
    assert kinds[OTHERS] == "others"


def test_more_parts_than_colours_are_drawn_too() -> None:
    assert len(_kinds(*map(str, range(12)))) == 12 + 2


def test_owners_have_colours_of_their_own() -> None:
    assert _kinds("user", "hardware", UNKNOWN)["user"] == _kinds("framework", "platform", "user")["user"] == "c0"
    assert len(set(_kinds("user", "framework", "platform", "hardware").values()) - {"others", "unknown"}) == 4
