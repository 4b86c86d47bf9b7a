from collections.abc import Iterable

from tests.logs import BANNER, NO_FAILURE, steps, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

_PACKAGE = "/opt/conda/lib/python3.11/site-packages"


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def entry_of(verdict: Verdict) -> str | None:
    return verdict.root_cause.entry if verdict.root_cause else None


def raised_in(file: str, raised: str, code: str) -> list[str]:
    frames: Iterable[tuple[str, int, str, str]] = [
        ("/job/train.py", 9, "main", "run()"),
        (_PACKAGE + file, 512, "f", code),
    ]
    return traceback(raised, list(frames), "")


def test_a_broad_sign_names_who_refused_whatever_the_words(engine: Engine) -> None:
    raised = raised_in(
        "/deepspeed/runtime/engine.py", "ValueError: no such widget", 'raise ValueError("no such widget")'
    )
    verdict = triage(engine, BANNER, raised)
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.confidence) == ("deepspeed.config", "likely")


def test_what_only_went_through_a_library_is_not_its_refusal(engine: Engine) -> None:
    raised = raised_in("/deepspeed/runtime/engine.py", "KeyError: 'widget'", "return self.widgets[name]")
    assert entry_of(triage(engine, BANNER, raised)) == "usage.python-error"


def test_a_sign_that_knows_the_words_comes_before_a_broad_one(engine: Engine) -> None:
    words = "RuntimeError: [Errno 98] Address already in use"
    raised = raised_in("/deepspeed/comm/torch.py", words, "raise RuntimeError(message)")
    assert entry_of(triage(engine, BANNER, raised)) == "network.address-in-use"


def test_a_broad_match_gives_way_to_another_ranks_named_cause(engine: Engine) -> None:
    first = raised_in(
        "/deepspeed/runtime/engine.py", "ValueError: no such widget", 'raise ValueError("no such widget")'
    )
    out_of_memory = traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix="[rank3]: "
    )
    assert entry_of(triage(engine, BANNER, steps(range(2)), first, out_of_memory)) == "cuda.oom"


def test_what_pythons_warnings_print_ends_no_run(engine: Engine) -> None:
    line = "cannot open shared object file: No such file or directory"
    warned = f"/env/lib/python3.11/site-packages/fast/__init__.py:25: UserWarning: Cannot load fast: libfast.so: {line}"
    assert triage(engine, BANNER, warned, steps([0], count=1)).outcome in NO_FAILURE
    assert entry_of(triage(engine, BANNER, f"ImportError: libfast.so: {line}")) == "env.shared-library"
