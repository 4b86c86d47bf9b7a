"""What no case speaks of is told by the inventory: which function of the library says it, called from which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.inventory.index import Index
from tests.built_in import built_in_engine, built_in_knowledge
from tests.logs import steps, text, traceback
from torchtriage.answer.localized_verdict import localized
from torchtriage.domain.message_template import LibraryMessage
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.knowledge.cache import cache_folder
from torchtriage.matching.inventory import Inventory
from torchtriage.reading.sources import from_bytes

SITE = "/env/lib/python3.12/site-packages"
USER = ("/job/train.py", 71, "<module>", "net = Weaver(width=-4)")


class Watched(Inventory):
    """An inventory that notes which libraries were asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[str] = []

    def library(self, name: str):  # type: ignore[no-untyped-def]
        self.asked.append(name)
        return super().library(name)


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    folder = tmp_path_factory.mktemp("inventory")
    messages = [
        LibraryMessage(
            "tinyweave._loom", "Weaver.__init__", "WeaveError", "the loom refuses {width} threads of {kind}"
        ),
        LibraryMessage("tinyweave._loom", "Weaver.weave", "WeaveError", "the shuttle {name} left the loom"),
    ]
    index = Index()
    index.add("1.0", messages, {"tinyweave._loom.Weaver": "tinyweave.Weaver"})
    index.write(folder, "tinyweave")
    compiled = Index()
    compiled.add("1.0", [LibraryMessage("src/Loom.cpp", "spin", "CHECK", "spin: the bobbin is out of yarn")], {})
    compiled.write(folder, "tinyweave.native")
    printed = Index()
    printed.add("1.0", [LibraryMessage("src/heddle.cc", "", "WARN", "Cuda failure {code} of the heddle")], {})
    printed.write(folder, "nccl")
    return Watched(folder)


@pytest.fixture(scope="module")
def engine(inventory: Watched) -> Engine:
    return Engine(built_in_knowledge(), cache_folder(), inventory=inventory)


def verdict(engine: Engine, *lines: list[str], lang: str = "en") -> Verdict:
    return engine.triage(from_bytes(text(*lines)), lang="zh" if lang == "zh" else "en")


def says(found: Verdict) -> str:
    assert found.answer is not None
    return found.answer.says


def refused(function: str = "__init__", message: str = "the loom refuses -4 threads of silk") -> list[str]:
    frames = [USER, (f"{SITE}/tinyweave/_loom.py", 12, function, "raise WeaveError(")]
    return traceback(f"tinyweave.WeaveError: {message}", frames)


def test_the_answer_names_the_public_class_the_users_line_and_the_values(engine: Engine) -> None:
    found = verdict(engine, steps([0]), refused())
    assert found.outcome == "unexplained"
    assert says(found).startswith(
        "WeaveError: the loom refuses -4 threads of silk. Raised by tinyweave.Weaver(…), called from /job/train.py:71: "
        "`net = Weaver(width=-4)`. In the message, width = -4, kind = silk."
    )


def test_the_same_is_said_in_chinese(engine: Engine) -> None:
    found = verdict(engine, steps([0]), refused(), lang="zh")
    assert "由 tinyweave.Weaver(…) 抛出，调用处 /job/train.py:71，代码 `net = Weaver(width=-4)`。" in says(found)


def test_a_method_is_named_as_such(engine: Engine) -> None:
    sentence = says(verdict(engine, steps([0]), refused("weave", "the shuttle b7 left the loom")))
    assert "Raised by tinyweave.Weaver.weave, called from /job/train.py:71" in sentence


def test_a_librarys_own_check_is_not_worth_a_retry(engine: Engine) -> None:
    assert verdict(engine, steps([0]), refused()).action.retry == "no"
    assert (
        verdict(engine, steps([0]), refused(message="a sentence that no release of it prints")).action.retry == "once"
    )
    said_later = localized(verdict(engine, steps([0]), refused()), engine.knowledge, "zh")
    assert (said_later.action.retry, said_later.action.reason[:4]) == ("no", "库自身的")


def test_a_check_is_compared_with_what_the_call_passes(engine: Engine) -> None:
    answer = verdict(engine, steps([0]), refused()).answer
    assert answer is not None
    assert answer.unknown == "The log does not show which of the passed values breaks this rule."
    assert answer.steps[0].do.startswith(
        "Directly above /job/train.py:71, print the values that `net = Weaver(width=-4)` passes"
    )
    other = verdict(engine, steps([0]), refused(message="a sentence that no release of it prints")).answer
    assert other is not None
    assert other.unknown == "This log does not show what led to this message."


def test_compiled_code_is_named_by_its_source_file(engine: Engine) -> None:
    raised = traceback(
        "RuntimeError: spin: the bobbin is out of yarn", [("/job/train.py", 8, "<module>", "spin(yarn)")]
    )
    assert "Raised by spin (src/Loom.cpp), called from /job/train.py:8: `spin(yarn)`." in says(
        verdict(engine, steps([0]), raised)
    )


def test_the_source_file_is_the_one_that_the_line_itself_names(engine: Engine) -> None:
    warned = "gpu-3:812:901 [2] transport/treadle.cc:598 NCCL WARN Cuda failure 401 of the heddle"
    assert "Raised by nccl (transport/treadle.cc:598)" in says(verdict(engine, [warned]))


def test_what_the_inventory_does_not_know_is_said_as_before(engine: Engine) -> None:
    sentence = says(verdict(engine, steps([0]), refused(message="a sentence that no release of it prints")))
    assert "Raised by" not in sentence
    assert (
        "Raised in tinyweave/_loom.py:12 (__init__), called from /job/train.py:71: `net = Weaver(width=-4)`."
        in sentence
    )


@pytest.mark.parametrize(
    "lines",
    [
        [steps([0, 1])],
        [steps([0]), traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", [USER])],
    ],
    ids=["a healthy run", "a failure of which a case speaks"],
)
def test_no_library_is_read_where_it_is_not_needed(engine: Engine, inventory: Watched, lines: list[list[str]]) -> None:
    inventory.asked.clear()
    verdict(engine, *lines)
    assert inventory.asked == []
    verdict(engine, steps([0]), refused())
    assert "tinyweave" in inventory.asked


def megatron_words(file: str, function: str = "check") -> Verdict:
    frames = [USER, (file, 12, function, "raise ValueError(")]
    raised = traceback("ValueError: global batch size (48) is not divisible by micro batch size (5) times 4", frames)
    return built_in_engine().triage(from_bytes(text(steps([0]), raised)))


def test_a_family_does_not_claim_what_another_library_raised_in_its_words() -> None:
    root = megatron_words(f"{SITE}/accelerate/parallel.py").root_cause
    assert root is not None
    assert not (root.entry or "").startswith("megatron.")


def test_the_family_claims_what_its_own_library_raised() -> None:
    root = megatron_words(f"{SITE}/megatron/core/parallel.py").root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("megatron.config", "certain")


def test_without_its_library_in_the_traceback_a_family_is_not_certain() -> None:
    root = megatron_words("/job/layers.py").root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("megatron.config", "likely")


def test_the_same_message_with_other_words_in_its_slots_has_the_same_fingerprint(engine: Engine) -> None:
    lines = [f"the loom refuses -4 threads of {kind}" for kind in ("silk", "wool", "raw silk")]
    prints = {verdict(engine, steps([0]), refused(message=message)).fingerprint for message in lines}
    assert len(prints) == 1
    other = verdict(engine, steps([0]), refused(message="the loom refuses nothing at all of silk")).fingerprint
    assert other not in prints


def test_without_the_inventory_the_words_of_a_message_count(tmp_path: Path) -> None:
    bare = Engine(built_in_knowledge(), cache_folder(), inventory=Inventory(tmp_path))
    lines = [f"the loom refuses -4 threads of {kind}" for kind in ("silk", "wool")]
    assert len({verdict(bare, steps([0]), refused(message=message)).fingerprint for message in lines}) == 2
