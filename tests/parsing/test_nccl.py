import pytest

from tests.collected import Collected
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.nccl import Nccl


def read(*texts: str) -> Collected:
    nccl = Collected(Nccl())
    for number, text in enumerate(texts, 1):
        nccl.feed(Line(number, text, text, Position(1, number)))
    return nccl


def joined(host: str, pid: int, rank: int, size: int, form: str = "nranks") -> str:
    return f"{host}:{pid}:88 [0] NCCL INFO ncclCommInitRank comm 0x55d9607ee240 rank {rank} {form} {size} cudaDev 0 - Init COMPLETE"


def warned(host: str, pid: int) -> str:
    return f"{host}:{pid}:91 [0] init.cc:340 NCCL WARN Cuda failure 2 'out of memory'"


@pytest.mark.parametrize("before", ["", "[2026-05-01 09:00:00] ", "[2026-05-01T09:00:00.120+08:00] "])
def test_a_warning_shows_its_host_with_and_without_its_time(before: str) -> None:
    assert [event.host for event in read(before + warned("gpu-3", 812)).events] == ["gpu-3"]


def test_what_no_process_of_nccls_wrote_is_not_a_warning() -> None:
    assert read("is NCCL WARN on by default?", "NCCL_DEBUG=WARN").events == []


@pytest.mark.parametrize("form", ["nranks", "nRanks"])
def test_a_communicator_of_all_shows_the_rank_of_who_warned(form: str) -> None:
    nccl = read(joined("gpu-3", 812, 9, 16, form), joined("gpu-4", 812, 1, 16, form))
    assert nccl.rank_of(warned("gpu-3", 812), None) == 9
    assert nccl.rank_of(warned("gpu-3", 812), 16) == 9
    assert nccl.rank_of(warned("gpu-5", 812), 16) is None


@pytest.mark.parametrize(
    ("expected", "world_size"),
    [
        ([joined("gpu-3", 812, 1, 2)], 16),  # a group of two of the sixteen
        ([joined("gpu-3", 812, 1, 2), joined("gpu-3", 812, 3, 4)], None),  # groups of two sizes
        ([joined("gpu-3", pid, pid % 2, 2) for pid in (810, 811, 812)], None),  # more than one group of two
    ],
)
def test_a_communicator_of_some_shows_no_rank_of_the_run(expected: list[str], world_size: int | None) -> None:
    assert read(*expected).rank_of(warned("gpu-3", 812), world_size) is None
