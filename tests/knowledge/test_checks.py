"""Each house rule, broken once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_in import small_bases
from torchtriage.knowledge import BUILT_IN, checks
from torchtriage.knowledge.checks import HEALTHY, check
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import Run, from_bytes

MODEL = (BUILT_IN / "dataloader" / "shm-bus-error.yaml").read_text(encoding="utf-8")
FILE = "dataloader/shm-bus-error.yaml"
# A sign of no case stands before the cases; MODEL gets one, so that rules about signs can be broken apart from cases.
SIGN = "  - regex: 'torch_shm_manager could not be started'\n"
MODEL = MODEL.replace("\ncases:\n", f"\nsigns:\n{SIGN}cases:\n").replace(
    "examples:\n  match:\n", "examples:\n  match:\n    - 'torch_shm_manager could not be started'\n"
)


def broken(folder: Path, old: str, new: str) -> list[str]:
    """Returns the problems of the model in which `old` reads `new`; of the entries beside it, what they say is not checked."""
    assert old in MODEL
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(MODEL.replace(old, new, 1), encoding="utf-8")
    report = check(load([folder]), [folder], small_bases(), ["dataloader.shm-bus-error", "dataloader.copy"])
    return [*report.problems, *report.warnings]


def line(text: str) -> int:
    return next(number for number, found in enumerate(MODEL.splitlines(), 1) if text in found)


@pytest.fixture
def sound_entries(tmp_path: Path) -> Path:
    """A folder in which the model has no problem of its own."""
    for name in ("dataloader/worker-killed", "process/sigbus", "process/sigabrt", "storage/disk-full"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((BUILT_IN / f"{name}.yaml").read_bytes())
    return tmp_path


def of_model(found: list[str]) -> list[str]:
    return [problem for problem in found if problem.startswith(FILE)]


def test_a_sound_entry_has_no_problem(sound_entries: Path) -> None:
    assert of_model(broken(sound_entries, "area: dataloader", "area: dataloader")) == []


@pytest.mark.parametrize(
    ("old", "new", "problem", "at"),
    [
        ("zh: DataLoader worker 的共享内存（/dev/shm）不足", "zh: no shm", "no Chinese in", "zh: DataLoader worker 的共享内存"),
        ("en: A DataLoader worker ran", "en: A DataLoader 进程 ran", "Chinese in", "en: A DataLoader worker ran"),
        ("en: A DataLoader worker ran", "en: TODO A worker ran", "still to write", "en: A DataLoader worker ran"),
        ("en: A DataLoader worker ran", "en: A DataLoader worker on one of the hosts ran", "the title has 13 words",
         "en: A DataLoader worker ran"),
        ("explains: [dataloader.worker-killed", "explains: [dataloader.nothing", "but no entry has this id", "explains: ["),
        ("explains: [dataloader.worker-killed", "explains: ['nothing.*'", "but no entry has this id", "explains: ["),
        (SIGN, "  - regex: 'shared (?=memory)'\n", "RE2 rejects", SIGN.strip()),
        ("  pid: 'worker", "  pid: '(?<!x)worker", "RE2 rejects", "  pid: 'worker"),
        ("    - 'RuntimeError: DataLoader worker (pid 4161) is killed by signal: Killed.'",
         "    - 'RuntimeError: DataLoader worker (pid 4161) is killed by signal: Bus error.'",
         "it matches its near miss", "is killed by signal: Killed."),
        ("    - 'RuntimeError: Shared memory manager connection has timed out'",
         "    - 'RuntimeError: something else entirely'", "the verdict on its example is", "connection has timed out'"),
        (SIGN, f"  - regex: '{'shared memory' * 20}'\n", "the sign has 260 characters", SIGN.strip()),
        (SIGN, SIGN + SIGN, "this sign appears twice", "cases:"),
        (SIGN, "  - regex: 'INFO|NCCL'\n", "matches a line of a healthy log", SIGN.strip()),
        ("  - en: Many workers with large", "  - when_message_has: 'ancdata'\n    en: Many workers with large",
         "no example of this entry shows 'ancdata'", "en: Many workers with large"),
        ("  - en: Many workers with large", "  - when_message_has: '(?=x)'\n    en: Many workers with large",
         "RE2 rejects '(?=x)'", "en: Many workers with large"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_reported_with_its_line(
    old: str, new: str, problem: str, at: str, sound_entries: Path
) -> None:
    found = of_model(broken(sound_entries, old, new))
    assert any(item.startswith(f"{FILE}:{line(at)}: ") and problem in item for item in found), found


@pytest.mark.parametrize("free", [r"(\S+)", r"(?P<pid>[\d;]+)"])
def test_a_free_capture_in_a_command_is_reported(sound_entries: Path, free: str) -> None:
    old = r"  pid: 'worker \(pid\(?s?\)? (\d+)'"
    new = old.replace(r"(\d+)", free)
    path = sound_entries / FILE
    path.write_text(MODEL.replace(old, new).replace("ls -lah /dev/shm | head", "kill {pid}"), encoding="utf-8")
    knowledge = load([sound_entries])
    problem, *others = of_model(check(knowledge, [sound_entries], small_bases(), ["dataloader.shm-bus-error"]).problems)
    assert problem.startswith(f"{FILE}:{line(old)}: the capture for a command is too broad")
    assert others == []


def test_too_few_examples_are_reported(sound_entries: Path) -> None:
    head, _, _ = MODEL.partition("examples:")  # those of cases count too, so only the near miss is wanting
    path = sound_entries / FILE
    path.write_text(head + "examples:\n  match: ['RuntimeError: unable to write to file </torch_1_2>']\n", "utf-8")
    report = check(load([sound_entries]), [sound_entries], small_bases(), ["dataloader.shm-bus-error"])
    found = of_model([*report.problems, *report.warnings])
    assert [item.partition(": ")[2] for item in found if "no example of this entry shows" not in item] == [
        "no near miss in examples.no_match: add a similar message that means something else",
    ]


def test_an_example_belongs_to_one_entry(sound_entries: Path) -> None:
    path = sound_entries / "dataloader" / "copy.yaml"
    path.write_text(MODEL.replace("id: dataloader.shm-bus-error", "id: dataloader.copy"), encoding="utf-8")
    found = broken(sound_entries, "area: dataloader", "area: dataloader")
    assert any("has the same example as dataloader.copy" in item for item in found)


def test_each_example_is_read_once(sound_entries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def opened(text: bytes) -> Run:
        read.append(text)
        return from_bytes(text)

    monkeypatch.setattr(checks, "from_bytes", opened)
    (sound_entries / FILE).write_text(MODEL, encoding="utf-8")
    entry = load([sound_entries]).entries["dataloader.shm-bus-error"]
    of_cases = [example for case in entry.cases for example in (case.example, *case.other_examples)]
    assert set(entry.match_examples) & set(of_cases)
    check(load([sound_entries]), [sound_entries], small_bases(), [entry.id])
    assert len(set(read)) == len(read) > len(of_cases)


def test_healthy_lines_are_lines_of_many_programs() -> None:
    lines = HEALTHY.read_text(encoding="utf-8").splitlines()
    assert len(set(lines)) == len(lines) >= 60
