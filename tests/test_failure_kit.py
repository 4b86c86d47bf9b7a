"""The kit that makes failures (tests/corpus/kit): its list, its random choices and its labels. The runs themselves need
torch."""

from __future__ import annotations

import ast
import gzip
from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from tests.corpus.kit import __main__ as kit
from tests.corpus.kit.launch_faults import LAUNCH_FAULTS
from tests.corpus.kit.sampling import Draw, JobFault, draws, held_back
from tests.corpus.make import Failed

JOB = Path(kit.__file__).parent / "job"
PACKAGES = {"2.1.2": set[str](), "2.13.0": {"accelerate", "ray"}}


def in_source() -> dict[str, tuple[list[str], bool]]:
    """Returns, for each fault of a job, the entries in its decorator, and whether it has a message."""
    found = {}
    for path in JOB.glob("faults_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        } | {"BUG": "usage.python-error"}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                call = node.decorator_list[0]
                assert isinstance(call, ast.Call)
                causes = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else [call.args[0]]
                ids = [one.value if isinstance(one, ast.Constant) else names[ast.unparse(one)] for one in causes]
                found[node.name] = ([str(one) for one in ids], len(call.args) > 1)
    return found


def job_fault(name: str, **label: object) -> JobFault:
    fields = {
        "causes": ("usage.python-error",),
        "says": ("KeyError: 'a'",),
        "at": "step",
        "ranks": "one",
        "retry": ("no",),
    }
    return JobFault(**{"name": name, "since": "2.1", "around": "", "run": "faults_program", **fields, **label})  # type: ignore[arg-type]


def test_there_are_many_faults_and_each_names_known_entries() -> None:
    known = set(built_in_knowledge().entries)
    faults = in_source()
    assert len(faults) + len(LAUNCH_FAULTS) >= 150
    assert {name for name, (causes, _) in faults.items() if set(causes) - known} == set()
    assert {each.name for each in LAUNCH_FAULTS if set(each.causes) - known - {"none.success"}} == set()
    assert [name for name, (_, says) in faults.items() if not says] == []


def test_a_third_of_the_faults_is_held_back() -> None:
    names = [*in_source(), *(each.name for each in LAUNCH_FAULTS)]
    assert 0.25 < sum(map(held_back, names)) / len(names) < 0.42


def test_a_seed_repeats_its_choices_and_uses_each_fault_before_any_repeats() -> None:
    faults = [job_fault(f"f{number}") for number in range(30)] + [job_fault("new", since="2.4")]
    once = draws(faults, PACKAGES, 61, 7)
    assert once == draws(faults, PACKAGES, 61, 7)
    assert once != draws(faults, PACKAGES, 61, 8)
    needing = {fault.name for fault in LAUNCH_FAULTS if fault.needs}
    assert needing
    assert needing.isdisjoint(draw.fault.name for draw in draws(faults, {"2.13.0": set()}, 200, 7))
    assert {draw.fault.name for draw in once} >= {fault.name for fault in faults}
    assert all(draw.torch == "2.13.0" for draw in once if draw.fault.name == "new" or draw.launcher == "ray")


@pytest.mark.parametrize(
    ("log", "rank"),
    [
        ("[rank1]: KeyError: 'a'", 1),
        ("KeyError: 'a'\n  rank      : 1 (local_rank: 1)", 1),
        ("KeyError: 'a'", None),
        ("[rank0]: KeyError: 'a'", None),
    ],
)
def test_the_rank_is_labeled_if_the_log_shows_it(log: str, rank: int | None) -> None:
    draw = Draw("000-key", job_fault("key"), "torchrun", "2.13.0", "as it is", 2, 1)
    assert kit.label(draw, log)["first_failing_rank"] == rank


def test_a_log_without_the_labelled_words_is_no_case() -> None:
    draw = Draw("000-key", job_fault("key"), "torchrun", "2.13.0", "as it is", 2, 1)
    with pytest.raises(Failed):
        kit.label(draw, "KeyError: 'b'")


def test_a_silent_end_is_labeled_by_the_peers_messages() -> None:
    fault = job_fault("killed", causes=("process.oom-killed",), says=("SIGKILL",), run="faults_process")
    meta = kit.label(
        Draw("000-killed", fault, "shell", "2.13.0", "as it is", 2, 1), "x: Connection closed by peer [::1]"
    )
    assert (meta["root_cause"], meta["first_failing_rank"]) == ("gloo.error", None)


def test_a_form_keeps_every_line() -> None:
    files = {"log.txt": b"a\nb\n"}
    assert kit.wrapped(files, "pdsh")["log.txt"].decode().splitlines() == ["gpu-7: a", "gpu-7: b"]
    assert gzip.decompress(kit.wrapped(files, "gzip")["log/train.log.gz"]) == b"a\nb\n"
    assert set(kit.wrapped({**files, "log/1.log": b"c"}, "as it is")) == {"log/launcher.log", "log/1.log"}
