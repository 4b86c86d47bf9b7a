"""What follows from the values of a message: multiples, differences, the nearest spelling."""

import pytest

from torchtriage.answer.failure_facts.computed_values import computed_values


def test_the_multiples_and_divisors_next_to_two_numbers() -> None:
    assert computed_values({"dividend": "1000", "divisor": "12"}) == {
        "multiple_below": "996",
        "multiple_above": "1008",
        "divisor_below": "10",
        "divisor_above": "20",
    }


@pytest.mark.parametrize(
    "values", [{"dividend": "24", "divisor": "12"}, {"dividend": "24", "divisor": "0"}, {"dividend": "x"}]
)
def test_nothing_where_it_divides_or_is_not_a_number(values: dict[str, str]) -> None:
    assert computed_values(values) == {}


def test_less_than_one_part_has_no_multiple_below() -> None:
    assert computed_values({"dividend": "7", "divisor": "12"}) == {"multiple_above": "12", "divisor_below": "7"}


def test_a_prime_has_no_divisor_to_choose() -> None:
    assert computed_values({"dividend": "31", "divisor": "12"}) == {"multiple_below": "24", "multiple_above": "36"}


def test_a_huge_divisor_is_not_tried() -> None:
    assert "divisor_below" not in computed_values({"dividend": str(10**17 + 3), "divisor": str(10**12)})


@pytest.mark.parametrize("other", ["limit", "want"])
def test_the_difference_of_two_numbers(other: str) -> None:
    assert computed_values({"have": "9,000", other: "8192"})["difference"] == "808"
    assert computed_values({"have": "8192", other: "8192"}) == {}


@pytest.mark.parametrize(
    ("have", "surplus"), [("8", {"difference": "4", "surplus": "4"}), ("1", {"difference": "3"}), ("4", {})]
)
def test_more_than_what_was_wanted(have: str, surplus: dict[str, str]) -> None:
    assert computed_values({"have": have, "want": "4"}) == surplus


@pytest.mark.parametrize(("written", "nearest"), [("cosin", {"nearest_choice": "cosine"}), ("zzz", {}), ("linear", {})])
def test_the_choice_that_a_word_is_spelled_like(written: str, nearest: dict[str, str]) -> None:
    assert computed_values({"written": written, "choices": "['cosine', 'linear']"}) == nearest


@pytest.mark.parametrize(("product", "third"), [("256", {"third_factor": "8"}), ("250", {}), ("0", {}), ("x", {})])
def test_the_factor_that_a_product_lacks(product: str, third: dict[str, str]) -> None:
    assert computed_values({"product": product, "factor": "4", "other_factor": "8"}) == third


@pytest.mark.parametrize(
    ("used", "limit", "times"),
    [("21.90G", "7.48G", "2.9"), ("1.5 TiB", "512 GiB", "3.0"), ("7.0G", "7.48G", None), ("7.0G", "12 hours", None)],
)
def test_how_many_times_a_limit_was_used(used: str, limit: str, times: str | None) -> None:
    assert computed_values({"used": used, "limit": limit}).get("times_limit") == times
