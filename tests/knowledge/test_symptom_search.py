from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.built_in import built_in_knowledge
from tests.yaml_files import read_yaml
from torchtriage.domain.entry import KnowledgeBase
from torchtriage.errors import KnowledgeError
from torchtriage.knowledge import synonyms
from torchtriage.knowledge.cache import load_index
from torchtriage.knowledge.symptom_search import SearchIndex
from torchtriage.knowledge.tokenizer import stem, units

SYMPTOMS: dict[str, list[Any]] = read_yaml(Path(__file__).parent / "symptoms.yaml")
PARTS = ("tuned", "held_out", "asked")
UNRELATED: list[str] = SYMPTOMS["unrelated"]


@pytest.fixture(scope="module")
def knowledge() -> KnowledgeBase:
    return built_in_knowledge()


@pytest.fixture(scope="module")
def index(knowledge: KnowledgeBase) -> SearchIndex:
    return SearchIndex(knowledge)


def search(index: SearchIndex, query: str, limit: int = 3) -> list[str]:
    return [hit.entry for hit in index.search(query, limit)]


def test_expected_entries_exist(knowledge: KnowledgeBase) -> None:
    named = {name for part in PARTS for symptom in SYMPTOMS[part] for name in symptom["expect"]}
    assert named <= set(knowledge.entries)


@pytest.mark.parametrize("part", PARTS)
def test_19_of_20_questions_find_a_right_entry_among_the_first_three(part: str, index: SearchIndex) -> None:
    missed = [
        symptom["q"] for symptom in SYMPTOMS[part] if not set(symptom["expect"]) & set(search(index, symptom["q"]))
    ]
    assert len(missed) <= 0.05 * len(SYMPTOMS[part]), missed


def test_what_is_about_no_failure_finds_nothing(index: SearchIndex) -> None:
    answered = {query: search(index, query) for query in UNRELATED if search(index, query)}
    assert len(answered) <= 0.1 * len(UNRELATED), answered


def test_one_everyday_word_among_strange_ones_is_not_an_answer(index: SearchIndex) -> None:
    assert search(index, "memory grows")
    assert not search(index, "how do dahlias and begonias grow")


def test_every_entry_is_found_by_its_own_questions(knowledge: KnowledgeBase, index: SearchIndex) -> None:
    lost = [
        (entry.id, question)
        for entry in knowledge.entries.values()
        for _, question in entry.asks
        if entry.id not in search(index, question)
    ]
    assert not lost


def test_advice_can_be_asked_for_in_both_languages(knowledge: KnowledgeBase) -> None:
    for entry in knowledge.entries.values():
        if entry.kind == "advice":
            assert {lang for lang, _ in entry.asks} == {"en", "zh"}, entry.id


@pytest.mark.parametrize(
    ("query", "entry"),
    [
        ("gpu0 memory higher than others", "checkpoint.load-on-gpu0"),
        ("DDP 验证精度不一致", "ddp.evaluation-differs"),
        ("dataloder worker kiled by signl bus eror", "dataloader.shm-bus-error"),
        ("训练 hang 住 no error", "perf.hang"),
        ("cuda.oom", "cuda.oom"),
        ("ChildFailedError", "elastic.child-failed"),
        ("Xid 79", "xid.79"),
        ("RuntimeError: Trying to backward through the graph a second time", "autograd.backward-twice"),
    ],
)
def test_mixed_misspelt_and_verbatim_questions(query: str, entry: str, index: SearchIndex) -> None:
    assert entry in search(index, query)


@pytest.mark.parametrize("query", ["", "   ", "??!", "pizza recipe", "the of and", "\x00\ud800", "饕餮"])
def test_what_no_entry_knows_finds_nothing(query: str, index: SearchIndex) -> None:
    assert index.search(query) == []


def test_scores_fall_from_at_most_one(index: SearchIndex) -> None:
    scores = [hit.score for hit in index.search("loss is nan with mixed precision", limit=50)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert len(scores) > 3


def test_a_huge_question_is_cut(index: SearchIndex) -> None:
    assert search(index, "cuda out of memory " + "x" * 1_000_000) == search(index, "cuda out of memory")


def test_the_index_is_kept_by_content(knowledge: KnowledgeBase, tmp_path: Path) -> None:
    few = replace(knowledge, entries={"cuda.oom": knowledge.entries["cuda.oom"]}, digest="sha256:few")
    assert search(load_index(few, tmp_path), "out of memory") == ["cuda.oom"]
    (kept,) = tmp_path.glob("search-*")
    kept.write_bytes(b"rubbish")
    assert search(load_index(few, tmp_path), "out of memory") == ["cuda.oom"]
    none = replace(knowledge, entries={}, digest="sha256:none")
    assert search(load_index(none, tmp_path), "out of memory") == []


def test_text_is_cut_into_words_parts_and_single_characters() -> None:
    assert units("ChildFailedError gpu0 显存 -9 A100 torch.load") == [
        "childfailederror", "child", "failed", "error", "gpu0", "gpu", "0", "显", "存", "-9", "a100", "torch", "load",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [("saves", "saved", "saving", "save"), ("stops", "stopped"), ("hang", "hangs")])
def test_forms_of_a_word_have_one_stem(words: tuple[str, ...]) -> None:
    assert len({stem(word) for word in words}) == 1


def test_the_longest_phrase_wins() -> None:
    phrases = synonyms.load()
    said = [stem(unit) for unit in units("gpu memory 显存不足")]
    assert synonyms.meanings(said, phrases) == [(0, 2, "=gpu-memory"), (2, 6, "=out-of-memory")]


def test_words_that_say_nothing_are_left_out(index: SearchIndex) -> None:
    assert search(index, "请问大佬，为什么显存不足") == search(index, "显存不足")
    assert search(index, "hello, why do I get CUDA out of memory") == search(index, "CUDA out of memory")


def test_synonyms_that_are_not_lists_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "synonyms.yaml"
    path.write_text("hang: stuck\n")
    with pytest.raises(KnowledgeError, match=r"synonyms\.yaml:1"):
        synonyms.load(path)
