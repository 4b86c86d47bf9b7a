"""The keys of a printed mapping that lacks an entry, as the failing rank printed it."""

from tests.logs import text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

FRAMES = [("/job/serve.py", 75, "load", "model = AutoModel.from_pretrained(name, device_map=device_map)")]
LACKS = "ValueError: model.embed_tokens.weight doesn't have any device set."


def told(engine: Engine, *printed: str) -> dict[str, object]:
    log = text([*printed], traceback(LACKS, FRAMES, "[rank1]: "))
    return {fact.name: fact.value for fact in engine.triage(from_bytes(log)).facts}


def printed(rank: int, *names: str) -> str:
    mapping = dict.fromkeys(names, "cuda")
    return f"[rank{rank}]: stage {rank} device_map={mapping}"


def test_the_failing_ranks_own_mapping_is_told_with_consecutive_names_joined(engine: Engine) -> None:
    layers = [f"model.layers.{number}" for number in (0, 1, 2, 5)]
    facts = told(engine, printed(1, *layers, "model.s", "lm_head"), printed(0, "model.norm"))
    assert facts["mapped_names"] == "model.layers.0-2, model.layers.5, model.s, lm_head"
    assert facts["mapped_names_line"] == 1
    assert "similar_name" not in facts


def test_a_key_spelled_like_the_missing_name_is_told(engine: Engine) -> None:
    assert told(engine, printed(1, "model.layers.0", "model.embed_token"))["similar_name"] == "model.embed_token"


def test_keys_that_differ_only_in_a_number_are_not_misspelled(engine: Engine) -> None:
    assert "similar_name" not in told(engine, printed(1, "model.embed_tokens2.weight1", "model.norm"))


def test_without_a_printed_mapping_there_is_no_fact(engine: Engine) -> None:
    assert "mapped_names" not in told(engine, "[rank0]: device_map=auto")
