import pytest

from torchtriage.reading.unwrap.csv_tables import is_table, rows


@pytest.mark.parametrize(
    ("row", "time"),
    [
        ('"2026-05-01T09:00:00Z","gpu-7","{}"', "2026-05-01T09:00:00Z"),
        ("2026-05-01T09:00:00Z,gpu-7,{}", "2026-05-01T09:00:00Z"),
        ("2026-05-01T09:00:00Z\tINFO\t{}", "2026-05-01T09:00:00Z"),
        ('"May 1, 2026 @ 09:00:00.250","{}"', "2026-05-01T09:00:00.250"),
        ('"5/1/2026, 9:00:00 PM","{}"', "2026-05-01T21:00:00"),
    ],
)
def test_a_table_without_names(row: str, time: str) -> None:
    content = "".join(row.format(f"step {at} of the run") + "\n" for at in range(6)).encode()
    assert is_table(content)
    assert [(number, each["message"], each["time"]) for number, each in rows(content)] == [
        (at + 1, f"step {at} of the run", time) for at in range(6)
    ]


@pytest.mark.parametrize(
    "row",
    ["2026-05-01 09:00:00,123 INFO step {}", "2026-05-01T09:00:00Z step {}, loss 1", "1777626000,", "step {},a,b"],
)
def test_lines_with_times_and_marks_are_not_tables(row: str) -> None:
    assert not is_table("".join(row.format(at) + "\n" for at in range(6)).encode())


def test_a_cell_with_line_feeds_counts() -> None:
    content = b'Time,Message\n1,"a\nb"\n2,c\n'
    assert [number for number, _ in rows(content)] == [2, 4]
