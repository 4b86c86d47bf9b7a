"""What differs between the names of a model's weights and those of a checkpoint."""

from __future__ import annotations

import pytest

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

TOLD = frozenset({"added_prefix", "lacking_prefix", "cut_characters", "cut_name", "whole_name"})


@pytest.mark.parametrize(
    ("missing", "unexpected", "expected"),
    [
        ("a.weight b.bias", "net.inner.a.weight net.inner.b.bias", {"added_prefix": "net.inner."}),
        ("body.a.weight body.b.bias", "a.weight b.bias", {"lacking_prefix": "body."}),
        ("a.weight head.bias", "net.a.weight net.b.bias", {}),
        ("a.weight", "c.weight", {}),
    ],
)
def test_a_prefix_on_one_side_is_reported(
    engine: Engine, missing: str, unexpected: str, expected: dict[str, str]
) -> None:
    found = facts(engine, missing.split(), unexpected.split())
    assert {name: value for name, value in found.items() if name.endswith("_prefix")} == expected


def test_names_that_lost_their_beginnings_are_reported(engine: Engine) -> None:
    found = facts(engine, ["layer_list.0.cl", "binary1.cl", "t"], ["", "ist.0.cl", ".cl"])
    assert found == {"cut_characters": "7", "cut_name": "ist.0.cl", "whole_name": "layer_list.0.cl"}


def facts(engine: Engine, missing: list[str], unexpected: list[str]) -> dict[str, str]:
    def listed(names: list[str]) -> str:
        return ", ".join(f'"{name}"' for name in names)

    log = (
        "RuntimeError: Error(s) in loading state_dict for Net:\n"
        f"\tMissing key(s) in state_dict: {listed(missing)}. \n\tUnexpected key(s) in state_dict: {listed(unexpected)}. \n"
    )
    return {fact.name: fact.text for fact in engine.triage(from_bytes(log.encode())).facts if fact.name in TOLD}
