import pytest

from torchtriage.reading.slurm_nodelist import MAX_NAMES, hosts, numbers, sorted_hosts


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        ("gpu-7", ("gpu-7",)),
        ("gpu[001-003]", ("gpu001", "gpu002", "gpu003")),
        ("gpu[1,3-4]-ib", ("gpu1-ib", "gpu3-ib", "gpu4-ib")),
        ("gpu[08-10],login1,gpu08", ("gpu08", "gpu09", "gpu10", "login1")),
        ("gpu[", ("gpu",)),
        ("", ()),
    ],
)
def test_a_node_list_in_full(expected: str, names: tuple[str, ...]) -> None:
    assert hosts(expected) == names


def test_a_list_without_end_is_cut() -> None:
    assert len(hosts("gpu[0-999999999]")) == MAX_NAMES
    assert len(numbers("0-999999999,5")) == MAX_NAMES


def test_numbers_and_the_order_of_names() -> None:
    assert numbers("0-2,7") == (0, 1, 2, 7)
    assert sorted_hosts(["gpu-10", "gpu-2", "login", "10.0.0.9"]) == ("10.0.0.9", "gpu-2", "gpu-10", "login")
