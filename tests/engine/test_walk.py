import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.logs import PEER_CLOSED, WAITING, steps, text, traceback
from torchtriage.domain.verdict import RootCause, Verdict
from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.reading.sources import LogFile, Run, open_path, open_stdin
from torchtriage.reading.zstd import compress

RAISED = "KeyError: 'image'"
ERROR_FILE = {
    "message": {
        "message": RAISED,
        "extraInfo": {"py_callstack": "\n".join([*traceback(RAISED), ""]), "timestamp": "1777626000"},
    }
}
TREE = {
    "none_x1/attempt_0/0/stdout.log": text(steps([0])),
    "none_x1/attempt_0/0/stderr.log": text(traceback(PEER_CLOSED, WAITING)),
    "none_x1/attempt_0/1/stdout.log": text(steps([1])),
    "none_x1/attempt_0/1/stderr.log": text("a warning", traceback(RAISED)),
    "none_x1/attempt_0/1/error.json": json.dumps(ERROR_FILE).encode(),
}


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def final_group(verdict: Verdict) -> RootCause:
    assert verdict.root_cause is not None
    return verdict.root_cause


def evidence_lines(verdict: Verdict) -> list[tuple[str | None, int]]:
    """Returns file and number of each line of evidence that names the exception."""
    return [(line.file, line.line) for line in final_group(verdict).evidence if "KeyError" in line.text]


def test_torchruns_tree(engine: Engine, tmp_path: Path) -> None:
    verdict = engine.triage(open_path(write_files(tmp_path, TREE)))
    root = final_group(verdict)
    assert (root.rank, root.local_rank, root.exception and root.exception.type) == (1, 1, "KeyError")
    assert ("none_x1/attempt_0/1/stderr.log", 5) in evidence_lines(verdict)


def test_an_error_file_alone_shows_the_traceback(engine: Engine, tmp_path: Path) -> None:
    root = final_group(
        engine.triage(
            open_path(write_files(tmp_path, {"none_x1/attempt_0/1/error.json": TREE["none_x1/attempt_0/1/error.json"]}))
        )
    )
    assert (root.rank, root.evidence[0].line, root.time) == (1, 1, "2026-05-01T09:00:00Z")
    assert root.exception is not None
    assert root.exception.frames


def tarred(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize(
    ("pack", "name"), [(tarred, "run.tar.gz"), (tarred, "run.tgz"), (zipped, "run.zip"), (tarred, "download")]
)
def test_an_archive_of_the_tree_means_the_same(
    engine: Engine, tmp_path: Path, pack: Callable[[dict[str, bytes]], bytes], name: str
) -> None:
    (tmp_path / name).write_bytes(pack(TREE))
    verdict = engine.triage(open_path(tmp_path / name))
    assert final_group(verdict).rank == 1
    assert ("none_x1/attempt_0/1/stderr.log", 5) in evidence_lines(verdict)


def test_an_archive_on_standard_input_means_the_same(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(tarred(TREE))))
    assert ("none_x1/attempt_0/1/stderr.log", 5) in evidence_lines(engine.triage(open_stdin()))


@pytest.mark.parametrize(
    ("names", "rank", "host"),
    [
        (["4711_0.out", "4711_1.out", "4711_2.out"], 2, None),
        (["llama-4711-gpu-7-0.err", "llama-4711-gpu-7-1.err", "llama-4711-gpu-8-2.err"], 2, "gpu-8"),
        (["llama-4711-gpu-7.out", "llama-4711-gpu-8.out"], None, "gpu-8"),
        (["nemo_log_globalrank-0_localrank-0.txt", "nemo_log_globalrank-9_localrank-1.txt"], 9, None),
        (["rank_0.log.gz", "rank_3.log.zst"], 3, None),
        (["session_x/logs/worker-aa-01000000-41.err", "session_x/logs/worker-bb-01000000-42.err"], None, None),
        (["gpu-7/none_x/attempt_0/0/stderr.log", "gpu-8/none_y/attempt_0/0/stderr.log"], None, "gpu-8"),
    ],
)
def test_folders_with_a_file_for_each_writer(
    engine: Engine, tmp_path: Path, names: list[str], rank: int | None, host: str | None
) -> None:
    packed: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": compress}
    files = {name: text("step 1 loss 0.5", "step 2 loss 0.4") for name in names}
    files[names[-1]] += text(traceback(RAISED))
    write_files(tmp_path, {name: packed.get(Path(name).suffix, bytes)(content) for name, content in files.items()})
    verdict = engine.triage(open_path(tmp_path))
    root = final_group(verdict)
    assert (root.rank, root.host) == (rank, host)
    assert (names[-1].removesuffix(".gz").removesuffix(".zst"), 6) in evidence_lines(verdict)


def test_pods_of_a_node(engine: Engine, tmp_path: Path) -> None:
    def pod(name: str, *lines: str) -> tuple[str, bytes]:
        written = "".join(f"2026-05-01T09:00:0{at % 10}.5Z stderr F {line}\n" for at, line in enumerate(lines))
        return f"ml_{name}_0f1e2d3c-aaaa-bbbb-cccc-0123456789ab/pytorch/0.log", written.encode()

    files = dict([
        pod("train-master-0", "[default1]:[rank1]: x", *steps([0])),
        pod("train-worker-0", "torchrun --nproc_per_node=2", *traceback(RAISED, prefix="[default1]:")),
    ])  # fmt: skip
    root = final_group(engine.triage(open_path(write_files(tmp_path, files))))
    assert (root.rank, root.local_rank, root.host) == (3, 1, "train-worker-0")


def test_node_rank_and_local_rank_make_the_rank_where_the_agents_reported_them(engine: Engine, tmp_path: Path) -> None:
    line = "  group_rank={group}\n  group_world_size=2\n  local_ranks=[0, 1]\n  role_ranks=[{ranks}]\n  global_ranks=[{ranks}]"
    files = {
        "gpu-7.log": text(line.format(group=0, ranks="0, 1"), steps([0])),
        "gpu-8.log": text(line.format(group=1, ranks="2, 3"), traceback(RAISED, prefix="[default1]:")),
    }
    root = final_group(engine.triage(open_path(write_files(tmp_path, files))))
    assert (root.rank, root.local_rank, root.host) == (3, 1, "gpu-8")


def test_what_can_not_be_read_in_a_folder_is_left_out_and_said(engine: Engine, tmp_path: Path) -> None:
    files = {
        "core": bytes(range(256)) * 99,
        "old.log.gz": gzip.compress(text(steps([0])))[:-9],
        "train.log": text(traceback(RAISED)),
    }
    verdict = engine.triage(open_path(write_files(tmp_path, files)))
    assert evidence_lines(verdict) == [("train.log", 4)]
    assert [warning.split(":")[0] for warning in verdict.warnings] == ["left out", "left out"]
    (tmp_path / "train.log").unlink()
    with pytest.raises(UnreadableLog, match="binary data"):
        engine.triage(open_path(tmp_path))


def test_what_is_before_the_place_where_a_file_is_broken_is_read(engine: Engine) -> None:
    def broken() -> Iterator[bytes]:
        yield text(["loading"] * 300, traceback(RAISED), ["waiting " * 100] * 200)
        yield b"still waiting\n"
        raise UnreadableLog("b.log: a broken archive")

    files = (LogFile("a.log", lambda: iter([text(steps([0]))])), LogFile("b.log", broken))
    verdict = engine.triage(Run("run", lambda: iter(files), several=True))
    assert evidence_lines(verdict) == [("b.log", 304)]
    assert verdict.warnings == ("left out: b.log: a broken archive",)


def test_of_two_hosts_the_one_that_failed_first_counts(engine: Engine, tmp_path: Path) -> None:
    def log(minute: int, *lines: str) -> bytes:
        return text([f"2026-05-01T09:{minute:02d}:00Z {line}" for line in lines])

    files = {
        "node-1.log": log(20, *traceback("ValueError: the batch is empty")),
        "node-2.log": log(10, *traceback(RAISED)),
    }
    verdict = engine.triage(open_path(write_files(tmp_path, files)))
    assert final_group(verdict).host == "node-2"
    assert evidence_lines(verdict) == [("node-2.log", 4)]
