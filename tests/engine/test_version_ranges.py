import pytest

from torchtriage.answer.version_ranges import shown


@pytest.mark.parametrize(
    ("applies", "version", "fits"),
    [
        ("torch>=2.1", "2.3.0+cu121", True),
        ("torch>=2.1.0", "2.1", True),
        ("torch>=2.1", "1.12.1", False),
        ("torch>=2.10", "2.9.1", False),
        ("torch<2.4", "2.3.1", True),
        ("torch<2.4", "2.4.0", False),
        ("torch==1.10", "1.10.2", True),
        ("torch==1.1", "1.10.2", False),
        ("torch>=1.8,<2.1", "2.0.1", True),
        ("torch>=1.8, <2.1", "2.1", False),
        ("torch>=2.1", "2.0.0", False),
        ("torch==2.0", "2.3.1", False),
        ("torch==2.0", "2.0.1", True),
        ("torch>=2.1", ">=2.3,<2.5", True),
        ("torch>=2.5", ">=2.3,<2.5", False),
        ("torch>=2.4", ">=2.3,<2.5", None),
        ("torch<2.3", ">=2.3", False),
        ("torch>=1.9", "<1.9", False),
    ],
)
def test_a_range_against_the_log(applies: str, version: str, fits: bool | None) -> None:
    assert shown(applies, {"torch": version, "cuda": "12.4"}) == (version, fits)


@pytest.mark.parametrize("applies", ["any", "", "torch>=two", "peft>=0.8"])
def test_what_cannot_be_compared_is_unknown(applies: str) -> None:
    assert shown(applies, {"torch": "2.3.0"}) == (None, None)
    assert shown("torch>=2.1", {"torch": "nightly"}) == (None, None)
