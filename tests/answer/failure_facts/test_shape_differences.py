"""How many reasons a list of weights with other shapes has."""

from __future__ import annotations

from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

HEAD = [("head.weight", [1000, 96], [21, 96]), ("head.bias", [1000], [21])]
WIDTH = [("stem.bias", [96], [128]), ("mlp.weight", [384, 96], [512, 128])]


def test_weights_that_differ_in_one_ratio_have_one_reason(engine: Engine) -> None:
    assert (facts(engine, HEAD)["mismatch_kinds"], facts(engine, WIDTH)["mismatch_kinds"]) == ("1", "1")


def test_each_reason_is_shown_by_the_plainest_weight(engine: Engine) -> None:
    found = facts(engine, [("head.weight", [1000, 96], [21, 128]), *WIDTH, HEAD[1]])
    assert (found["mismatch_count"], found["mismatch_kinds"]) == ("4", "2")
    assert found["mismatch_examples"] == "`stem.bias` [96] against [128]; `head.bias` [1000] against [21]"


def test_the_only_dimension_that_differs_is_reported(engine: Engine) -> None:
    found = facts(engine, HEAD)
    assert [found[name] for name in ("mismatch_axis", "saved_size", "current_size")] == ["0", "1000", "21"]
    assert "mismatch_axis" not in facts(engine, WIDTH[1:])


def test_other_dimensions_and_a_model_without_weights_are_reasons_of_their_own(engine: Engine) -> None:
    found = facts(engine, [*HEAD, ("body.weight", [64, 3], [64, 3, 1]), ("norm.weight", [64], [0])])
    assert found["mismatch_kinds"] == "2"


def test_what_a_sentence_has_no_room_for_is_counted(engine: Engine) -> None:
    names = ("a" * 50, "b" * 50, "c" * 50)
    found = facts(engine, [(name, [8], [place + 1]) for place, name in enumerate(names)])
    assert found["mismatch_examples"].endswith("against [2]; 1 more")


def test_a_list_that_mail_wrapped_is_read(engine: Engine) -> None:
    log = message(HEAD).replace("a param with", "a param\nwith").replace("current model is", "current\nmodel is")
    assert read(engine, log)["mismatch_count"] == "2"


def facts(engine: Engine, weights: list[tuple[str, list[int], list[int]]]) -> dict[str, str]:
    return read(engine, message(weights))


def message(weights: list[tuple[str, list[int], list[int]]]) -> str:
    return "RuntimeError: Error(s) in loading state_dict for Net:\n" + "".join(
        f"\tsize mismatch for {name}: copying a param with shape torch.Size({saved}) from checkpoint, "
        f"the shape in current model is torch.Size({current}).\n"
        for name, saved, current in weights
    )


def read(engine: Engine, log: str) -> dict[str, str]:
    return {fact.name: fact.text for fact in engine.triage(from_bytes(log.encode())).facts}
