import textwrap
from pathlib import Path

import pytest
import re2

from tests.built_in import built_in_engine
from torchtriage.domain.entry import Text
from torchtriage.errors import BadInput
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.accept_expectations import accepted
from torchtriage.knowledge.checks import problems
from torchtriage.knowledge.example_extraction import extract_example
from torchtriage.knowledge.loader import load
from torchtriage.knowledge.new_entry import Sample, case_name, failure, new_case, new_entry, path_of, with_case
from torchtriage.knowledge.proposed_sign import MAX_LENGTH, proposed_sign
from torchtriage.reading.sources import from_bytes

UNKNOWN = "quantum.FluxError: the flux of shard 17 left its tube in '/data/run 4' after 0x3f ticks"


@pytest.mark.parametrize(
    "name", ["", "cuda", "Cuda.oom", "cuda/oom", "../x.y", "a.b.", "a..b", "a.b\n", "cuda.o m", ".a"]
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not a valid entry id"):
        path_of(name, [BUILT_IN])


def test_an_existing_entry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cuda\.oom exists already"):
        path_of("cuda.oom", [BUILT_IN, tmp_path])


def test_a_new_entry_goes_to_the_last_folder(tmp_path: Path) -> None:
    assert path_of("env.torch-2.14", [BUILT_IN, tmp_path]) == tmp_path / "env" / "torch-2.14.yaml"


@pytest.mark.parametrize(
    "message",
    [None, UNKNOWN, "E: \"quotes\" and 'more': #{x} [y] \\ %", "Error: 显存 \u2028 \x07", "K", "a: b\nc: d\n\ttab"],
)
def test_a_draft_is_an_entry_that_says_what_is_left(message: str | None, tmp_path: Path) -> None:
    path = path_of("new.entry", [tmp_path])
    path.parent.mkdir()
    case = case_name(message) if message else "some-case"
    path.write_text(new_entry("new.entry", case, Sample(message) if message else None), encoding="utf-8")
    knowledge = load([tmp_path])
    if message:
        assert knowledge.entries["new.entry"].cases[0].example == message
    left = problems(knowledge, [tmp_path])
    assert sum("still to write" in problem for problem in left) == 4
    assert all(problem.startswith("new/entry.yaml:") for problem in left)


OLD = """\
id: new.entry
kind: cause
title: {en: A tube failed, zh: 管故障}  # never two
area: new
owner: user
signs:
  - text: 'tube one failed'

# why
explains: []
action: {advice: fix-first, retry: no}
causes: [{en: It is old., zh: 老化。}]
fixes: [{title: {en: Buy a tube, zh: 买管}}]
examples:
  match: ['tube one failed']
"""
FALLBACK = """\
cases:
    - id: tube-three
      text: tube three failed
      says: {en: Tube three failed.}
    # what is left
    - id: rest
      says: {en: A tube failed.}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, OLD.replace("\n# why", "CASE\n# why").replace("CASE", "cases:\nCASE")),
        (OLD.replace("# why", "cases: []\n# why"), OLD.replace("# why", "cases:\nCASE# why")),
        (OLD.replace("# why", FALLBACK + "# why"),
         OLD.replace("# why", FALLBACK.replace("    # what", "CASE    # what") + "# why")),
        (OLD.replace("# why", FALLBACK.partition("    # what")[0] + "# why"),
         OLD.replace("# why", FALLBACK.partition("    # what")[0] + "CASE# why")),
    ],
)  # fmt: skip
def test_a_case_is_added_and_all_else_stays(old: str, new: str, tmp_path: Path) -> None:
    case = new_case("tube-two", Sample("tube 2 failed", "line"))
    indented = case if "    - id: rest" not in old and "tube-three" not in old else textwrap.indent(case, "  ")
    assert with_case(old, "tube-two", case) == new.replace("CASE", indented)
    path = tmp_path / "new" / "entry.yaml"
    path.parent.mkdir()
    path.write_text(with_case(old, "tube-two", case), encoding="utf-8")
    ids = [one.id for one in load([tmp_path]).entries["new.entry"].cases]
    assert ids == sorted(ids, key=lambda name: name == "rest")
    assert "tube-two" in ids
    with pytest.raises(BadInput, match="already has a case 'tube-two'"):
        with_case(with_case(old, "tube-two", case), "tube-two", case)


def test_cases_in_one_line_are_left_alone() -> None:
    with pytest.raises(BadInput, match="on one line"):
        with_case("cases: [{id: a, says: {en: b}}]\n", "c", new_case("c", None))


@pytest.mark.parametrize(
    ("message", "regex", "groups"),
    [
        (UNKNOWN, r"FluxError: the flux of shard (?P<shard>\d+) left its tube in '(?P<path>[^'\n]+)' after "
         "(?:0x)?[0-9a-fA-F]+ ticks", {"shard": "17", "path": "/data/run 4"}),
        ("KeyError: 'x'", r"KeyError: '(?P<name>[^'\n]+)'", {"name": "x"}),
        ("CUDA error 719 at src/a.cu, 3 of 4", r"CUDA error 719 at (?P<path>[^\s'\"]*[^\s'\".,:;)]), (?P<count>\d+) of "
         r"(?P<other_count>\d+)", {"path": "src/a.cu", "count": "3", "other_count": "4"}),
        ("Error: [2, 3] against (4, 5), torch.int8, 2.5 GiB at 10.0.0.1:29500",
         r"Error: \[(?P<shape>[\d, x]+)\] against \((?P<other_shape>[\d, x]+)\), torch\.(?P<dtype>\w+), "
         r"(?P<size>\d[\d.,]* ?[KMGT]i?B) at (?P<address>\d+\.\d+\.[\d.:]+\d)",
         {"shape": "2, 3", "other_shape": "4, 5", "dtype": "int8", "size": "2.5 GiB", "address": "10.0.0.1:29500"}),
    ],
)  # fmt: skip
def test_a_sign_leaves_values_open_and_names_them(message: str, regex: str, groups: dict[str, str]) -> None:
    sign = proposed_sign(message)
    assert (sign.regex, sign.groups) == (regex, groups)
    found = re2.search(sign.regex, message)
    assert found.groupdict() == groups


def test_a_sign_is_short_enough_and_whole() -> None:
    for message in (f"Error: {'many words ' * 40}", f"Error: {'12 of (3) ' * 40}", "E" * 900, "(" * 300):
        sign = proposed_sign(message)
        assert 0 < len(sign.regex) <= MAX_LENGTH
        assert re2.search(sign.regex, message)
    assert proposed_sign("K: 'x'").general
    assert not proposed_sign(UNKNOWN).general


LOG = """\
[rank1]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank1]:   File "train.py", line 3, in <module>
[rank1]:     run(token="sk-ant-REDACTED")
[rank0]:   File "train.py", line 9, in <module>
[rank1]: flux.Lost: tube 17
[rank1]:   of the lab
[rank0]: KeyError: 'x'
done
"""


def test_an_example_is_one_writers_traceback_without_secrets() -> None:
    text, example = extract_example(from_bytes(LOG.encode()), None, 6)
    assert text == "flux.Lost: tube 17"
    lines = example.splitlines()
    assert [line[:9] for line in lines] == ["[rank1]: "] * 5
    assert lines[0].endswith("(most recent call last):")
    assert lines[-1].endswith("of the lab")
    assert "abcdefghij" not in example
    assert extract_example(from_bytes(LOG.encode()), None, 3)[1] == example
    assert extract_example(from_bytes(LOG.encode()), None, 9) == ("done", "done")
    with pytest.raises(BadInput, match="has no line 10"):
        extract_example(from_bytes(LOG.encode()), None, 10)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    expect: 'A'\n", "    expect: 'It''s B'\n"),
        ("    expect: |-\n      A\n      C\n", "    expect: 'It''s B'\n"),
        ("    expect: {en: A, zh: 甲}\n", "    expect: {en: 'It''s B', zh: '乙'}\n"),
        ("", "    expect: 'It''s B'\n"),
    ],
)
def test_what_a_case_says_is_written_into_expect(old: str, new: str) -> None:
    form = "cases:\n  - id: one\n    says: {en: X}\n  - id: two  # 甲\n    says: {en: X}\n{}# rest\naction: {a: b}\n"
    source = form.replace("{}", old)
    assert accepted(source, {"two": Text("It's B", "乙")}) == form.replace("{}", new)
    assert accepted(source, {"three": Text("X", "X")}) == source


def test_an_accepted_sentence_is_in_its_case_whatever_follows() -> None:
    form = "cases:\n  - id: one\n    example: |-\n      # a\n{}  # of two\n  - id: two\n    also:\n      - {{example: b}}\n"
    new = "    expect: 'A'\n"
    assert accepted(form.format(""), {"one": Text("A", "")}) == form.format(new)


def test_the_failure_of_a_log_is_its_exception_or_its_evidence() -> None:
    engine = built_in_engine()
    log = f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    run()\n{UNKNOWN}\n'
    assert failure(engine.triage(from_bytes(log.encode()))) == UNKNOWN
    with pytest.raises(BadInput, match="nothing failed"):
        failure(engine.triage(from_bytes(b"epoch 1 step 100 loss 2.3\nepoch 1 step 200 loss 2.1\n")))
