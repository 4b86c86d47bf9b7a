import pytest

from torchtriage.matching.masking import mask, mask_all


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tried to allocate 2.00 GiB", "Tried to allocate 512.00 MiB"),
        ("bad sample 17 in /data/a.tar", "bad sample 4 in /mnt/b7/c.tar"),
        ("mat1 and mat2 shapes cannot be multiplied (8x16 and 32x10)", "mat1 and mat2 shapes cannot be multiplied (4x12 and 3x1)"),
        ("connect to [gpu-3.rack2.local]:29500", "connect to [node-b]:29501"),
        ("connect to gpu-3:29500", "connect to dgx01:29501"),
        ("lost 10.0.0.7:2551", "lost 192.168.1.12:80"),
        ("no key 'img_00123.jpg'", "no key 'img_7.jpg'"),
        ("no file 'runs/ann/last'", "no file '/scratch/bob/x.pt'"),
        ("DataLoader worker (pid(s) 11, 12)", "DataLoader worker (pid(s) 7)"),
        ("rank3 of job_1234 left", "rank12 of job_99 left"),
        ("at 0x7f12aa of 8f14e45fceea167a5a36dedd4bea2543", "at 0x1 of c9f0f895fb98ab9159f51fd0297e236d"),
        ("id a2a6f0c4-0000-4000-8000-00000000000f", "id 0b0c0d0e-1111-4222-8333-abcdefabcdef"),
        ("since 2026-05-01T09:10:00.5Z", "since 2025-12-31 23:59:59+01:00"),
        ("world size [1, 2, 3]", "world size [4]"),
    ],
)  # fmt: skip
def test_what_is_one_jobs_own_is_not_a_part_of_the_essence(one: str, other: str) -> None:
    assert mask_all(one) == mask_all(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'image'", "KeyError: 'label'"),
        ("expected float16", "expected float64"),
        ("conv1d got", "conv2d got"),
        ("No module named 'apex'", "No module named 'einops'"),
        ("expected cuda:0", "expected cpu"),
    ],
)
def test_words_that_say_what_went_wrong_stay(one: str, other: str) -> None:
    assert mask_all(one) != mask_all(other)


def test_numbers_inside_of_names_are_left_alone() -> None:
    assert mask("float16 and conv2d of x86_64") == "float16 and conv2d of x86_64"


def test_a_secret_of_whatever_kind_is_masked_as_in_older_releases() -> None:
    assert mask("401 for [redacted:hugging-face-token]") == mask("401 for [redacted]")
