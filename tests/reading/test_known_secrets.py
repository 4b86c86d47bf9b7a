"""What a name once told to be a secret goes wherever else it stands. Secrets are put together from pieces."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from torchtriage.reading.redaction.known_secrets import KnownSecrets
from torchtriage.reading.redaction.redact import redact, redacted
from torchtriage.reading.redaction.redact_values import without_secrets

HEX = "0123456789abcdef0123456789abcdef01234567"
PASSWORD = "Tr4in" + "!ngN0de"


def _clean(*blocks: str) -> list[str]:
    return [block.decode() for block in redacted(block.encode() for block in blocks)]


@pytest.mark.parametrize(("named", "value"), [("WANDB_API_KEY=", HEX), ("DB_PASSWORD: ", PASSWORD), ("redis://:", "")])
def test_a_value_goes_before_and_after_what_shows_of_it(named: str, value: str) -> None:
    line = f"{named}{value}\n" if value else f"redis://:{PASSWORD}@cache:6379/0\n"
    value = value or PASSWORD
    before, tell, behind = _clean(f"run {value} now\n" + line, "step 1\n", f"Traceback: {value!r} was refused\n")
    assert [value in block for block in (before, tell, behind)] == [False] * 3
    assert before.startswith("run [redacted:")
    assert tell == "step 1\n"
    assert behind.startswith("Traceback: '[redacted:")


def test_a_value_goes_from_a_block_that_is_long() -> None:
    healthy = "step 1 loss 0.1\n" * 10_000
    _, later = _clean(f"WANDB_API_KEY={HEX}\n", f"{healthy}using {HEX}\n{healthy}")
    assert later == f"{healthy}using [redacted:api-key]\n{healthy}"


@pytest.mark.parametrize(
    ("expected", "line"),
    [
        ("password=trainer1", "ssh trainer1@gpu-07"),  # a word with a digit is many other things, too
        ("password=amber-falcon", "the host amber-falcon is drained"),
        (f"password={PASSWORD}", f"x{PASSWORD}y"),  # a short one counts for itself alone
        ("?AccessKeyId=LOCALKEY0123456789", "id LOCALKEY0123456789"),  # tells who, not what opens
    ],
)
def test_what_else_may_be_called_so_stays(expected: str, line: str) -> None:
    cleaned, other = _clean(f"{expected}\n", f"{line}\n")
    assert "[redacted:" in cleaned
    assert other == f"{line}\n"


def test_one_file_shows_of_the_secrets_of_the_next() -> None:
    known = KnownSecrets()
    list(redacted([f"HUB_SECRET={HEX}\n".encode()], known))
    assert next(redacted([f"got {HEX}\n".encode()], known)) == b"got [redacted:secret]\n"
    assert redact(f"got {HEX}") == f"got {HEX}"  # nothing is remembered from one log to another


def test_only_so_many_are_remembered() -> None:
    known = KnownSecrets()
    values = [f"{number:03}abcdef0123456789abcdef0123456789"[:32] for number in range(100)]
    list(redacted(("\n".join(f"API_KEY={value}" for value in values) + "\n",)[0].encode() for _ in range(1)))
    for value in values:
        redact(f"API_KEY={value}", known)
    later = redact("\n".join(values), known)
    assert [value in later for value in values] == [False] * 64 + [True] * 36


@dataclass(frozen=True)
class Told:
    line: str
    words: tuple[str, ...]
    count: int = 1


def test_one_text_of_an_answer_shows_of_the_secrets_of_the_others() -> None:
    value = Told(f"got {HEX}", ("step 1", f"API_KEY={HEX}"))
    assert without_secrets(value) == Told("got [redacted:api-key]", ("step 1", "API_KEY=[redacted:api-key]"))
