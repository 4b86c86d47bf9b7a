"""The arithmetic of messages about sizes, as torch and training frameworks print them."""

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

RAISED = 'Traceback (most recent call last):\n  File "/job/net.py", line 6, in forward\n    y = f(x, w)\n'
MISFIT = "RuntimeError: The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension 1"


def facts_of(engine: Engine, message: str) -> dict[str, object]:
    found = {fact.name: fact.value for fact in engine.triage(from_bytes(f"{RAISED}{message}\n".encode())).facts}
    names = ("relation", "turned_operand", "packed_outputs", "side_ratio", "division", "given_side", "fitting_side")
    return {name: found[name] for name in names if name in found}


@pytest.mark.parametrize(
    ("message", "relation"),
    [
        (MISFIT.format(577, 257), "577 = 24² + 1, 257 = 16² + 1"),
        (MISFIT.format(1024, 256), "1024 = 4 × 256"),
        (MISFIT.format(513, 512), "513 = 512 + 1"),
        (MISFIT.format(784, 1024), "784 = 28², 1024 = 32²"),
        (MISFIT.format(4, 2), None),
        (MISFIT.format(77, 45), None),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x9216 and 256x10)", "9216 = 36 × 256"),
        (
            "RuntimeError: shape '[8, 32, 64]' is invalid for input of size 8192",
            "8 × 32 × 64 = 16384; 16384 = 2 × 8192",
        ),
        ("RuntimeError: shape '[4, -1, 49]' is invalid for input of size 20480", "20480 = 104 × 196 + 96"),
        ("RuntimeError: shape '[4, 100]' is invalid for input of size 512", "4 × 100 = 400"),
        ("ValueError: weights of shape (151936, 896) do not fit (151936, 448)", "896 = 2 × 448"),
        ("ValueError: weights of shape (151936, 896) do not fit (32000, 448)", None),
    ],
)
def test_what_two_sizes_have_to_do_with_one_another(engine: Engine, message: str, relation: str | None) -> None:
    assert facts_of(engine, message).get("relation") == relation


@pytest.mark.parametrize(
    ("shapes", "turned"), [("12x40 and 12x8", "12x40"), ("12x40 and 8x40", "8x40"), ("12x40 and 30x8", None)]
)
def test_the_matrix_that_would_fit_if_it_were_transposed(engine: Engine, shapes: str, turned: str | None) -> None:
    message = f"RuntimeError: mat1 and mat2 shapes cannot be multiplied ({shapes})"
    assert facts_of(engine, message).get("turned_operand") == turned


def test_the_layer_after_a_packed_4_bit_weight(engine: Engine) -> None:
    message = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (549x6656 and 1x22151168)"
    assert facts_of(engine, message)["packed_outputs"] == 6656


@pytest.mark.parametrize(
    ("message", "division"),
    [
        ("AssertionError: 46 layers are not divisible by 4 stages", "46 = 11 × 4 + 2"),
        ("AssertionError: 48 layers are not divisible by 4 stages", None),
        ("AssertionError: 46 layers, 4 stages and 2 chunks do not fit", None),
        ("AssertionError: layer1 and v2.5 do not fit", None),
    ],
)
def test_what_is_left_when_one_number_divides_the_other(engine: Engine, message: str, division: str | None) -> None:
    assert facts_of(engine, message).get("division") == division


@pytest.mark.parametrize(
    ("shape", "elements", "fitting"),
    [
        ("[32, 9216]", 55296, ("32", "6")),
        ("[9000, -1, 1, 32, 2]", 131072, ("9000", "2048")),
        ("[4, 100]", 512, None),  # no whole number of hundreds
        ("[-1, 12]", 55, None),
        ("[8]", 7, None),  # nothing else to go by
    ],
)
def test_the_first_size_that_would_fit(
    engine: Engine, shape: str, elements: int, fitting: tuple[str, str] | None
) -> None:
    log = f"{RAISED}RuntimeError: shape '{shape}' is invalid for input of size {elements}\n"
    found = {fact.name: str(fact.value) for fact in engine.triage(from_bytes(log.encode())).facts}
    assert (fitting is None) == ("fitting_size" not in found)
    assert fitting in (None, (found.get("first_size"), found.get("fitting_size")))


@pytest.mark.parametrize(
    ("shape", "elements", "sides"),
    [
        ("[32, 128, 9, 9]", 802816, ("9", "14")),
        ("[256, 7, 7]", 12544, None),  # it fits
        ("[32, 128, 9, 9]", 802817, None),
        ("[32, 128, 9, 8]", 802816, None),
        ("[-1, 9, 9]", 196, None),
    ],
)
def test_the_side_of_a_map_that_would_fit(
    engine: Engine, shape: str, elements: int, sides: tuple[str, str] | None
) -> None:
    found = facts_of(engine, f"RuntimeError: shape '{shape}' is invalid for input of size {elements}")
    assert sides == (None if "fitting_side" not in found else (str(found["given_side"]), str(found["fitting_side"])))


@pytest.mark.parametrize(
    ("given", "expected", "ratio"),
    [(131072, 25088, "16/7"), (9216, 2304, "2"), (25088, 25088, None), (3000, 512, None)],
)
def test_how_much_larger_the_images_are(engine: Engine, given: int, expected: int, ratio: str | None) -> None:
    message = f"RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x{given} and {expected}x10)"
    assert facts_of(engine, message).get("side_ratio") == ratio
