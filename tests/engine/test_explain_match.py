from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, steps, text, traceback
from torchtriage.answer.explain_match import Why
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB"
)


def why(engine: Engine, entry: str, *parts: str | list[str]) -> Why:
    return engine.why(from_bytes(text(*parts)), entry)


def failed() -> list[str | list[str]]:
    return [BANNER, steps(range(2)), traceback(MEMORY, prefix="[rank1]: "), traceback(PEER_CLOSED, WAITING, "[rank0]: "),
            agent(1, 1)]  # fmt: skip


def test_the_root_cause_shows_the_sign_and_its_line(engine: Engine) -> None:
    result = why(engine, "cuda.oom", *failed())
    assert (result.state, result.root_cause) == ("root", "cuda.oom")
    assert result.signs[0].state == "matched"
    assert MEMORY in result.signs[0].text
    assert result.signs[0].line == 45


def test_a_consequence_names_what_came_before_it(engine: Engine) -> None:
    result = why(engine, "gloo.error", *failed())
    assert result.state in ("explained", "weaker")
    assert result.other == "cuda.oom"


def test_an_entry_that_did_not_match_shows_how_far_it_got(engine: Engine) -> None:
    result = why(
        engine, "dataloader.shm-bus-error", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."
    )
    assert result.state == "none"
    assert result.signs[0].state == "part"
    assert any(token.state == "different" for token in result.signs[0].tokens)
    assert result.signs[0].line == 1


def test_an_entry_whose_error_the_run_survived(engine: Engine) -> None:
    caught = ["ERROR: caught it, going on", *traceback(MEMORY)]
    result = why(engine, "cuda.oom", BANNER, steps(range(2)), caught, steps(range(2), 20, 200), "training finished")
    assert result.state == "survived"


def test_what_any_program_prints_is_held_back_where_nothing_shows_of_training(engine: Engine) -> None:
    server = ["LOG:  database system is shut down", "FATAL:  could not write: No space left on device"] * 6
    result = why(engine, "storage.disk-full", server)
    assert (result.state, result.root_cause) == ("general", None)


def test_advice_has_no_signs(engine: Engine) -> None:
    advice = next(entry.id for entry in engine.knowledge.entries.values() if not entry.signs)
    assert why(engine, advice, "nothing").state == "no_signs"


def test_sentences_exist_in_both_languages(engine: Engine) -> None:
    result = why(engine, "gloo.error", *failed())
    for lang in ("en", "zh"):
        data = result.as_dict(lang)
        assert data["reason"]
        assert all(sign["reason"] for sign in data["signs"])
