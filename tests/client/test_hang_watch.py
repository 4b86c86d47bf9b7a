"""What a watch takes for a hang, by a clock that is told: nothing here waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.built_in import built_in_knowledge
from tests.client.made_runs import Print, made_hang, made_run, watched
from torchtriage.client import torchtriage_client as client
from torchtriage.client.torchtriage_client import Followed, Follower, Limits, News, Watch, Work

STEPS = [Print(float(step), f"step {step} loss 2.5") for step in range(1, 60)]


@pytest.mark.parametrize("seed", range(100))
def test_a_run_that_goes_on_is_no_hang(seed: int) -> None:
    run = list(made_run(seed))
    assert watched(run, run[-1].at + 1) == []


@pytest.mark.parametrize("seed", range(20))
def test_an_evaluation_that_only_stacks_show_is_no_hang(seed: int) -> None:
    run = list(made_run(seed, silent_evaluations=True))
    assert watched(run, run[-1].at + 1, stacks=True) == []


@pytest.mark.parametrize("seed", range(100))
def test_every_hang_is_reported(seed: int) -> None:
    run, since = made_hang(seed)
    news = watched(run, since + 3600)
    assert {told.kind for _, told in news} <= {"silent", "stalled", "watchdog"}
    assert since + 90 < news[0][0] < since + 1200


def test_a_usual_run_is_reported_after_the_minimum_time() -> None:
    (at, news), *others = watched(STEPS, 1000)
    assert (at, news.kind, news.seconds, news.limit, news.usual, news.step) == (150, "silent", 91, 90, 1, 59)
    assert not others


def test_long_steps_raise_the_limit() -> None:
    run = [Print(60.0 * step, f"step {step}") for step in range(1, 20)]
    assert [(at, news.limit) for at, news in watched(run, 4000)] == [(19 * 60 + 301, 300)]


@pytest.mark.parametrize(("works", "told"), [(False, 150), (True, 660)])
def test_processes_at_work_get_more_time(works: bool, told: int) -> None:
    run = [*STEPS, Print(3000.0, "saved", works=works)]
    assert watched(run, 1000)[0][0] == told


def test_a_new_line_gets_more_time_and_a_known_one_what_it_took() -> None:
    run, at = list[Print](), 0.0
    for step in range(120):
        at += 1
        run.append(Print(at, f"step {step} loss 2.5"))
        if step % 30 == 29:
            run.append(Print(at + 1, "saving a checkpoint"))
            at += 200
    assert watched(run, at) == []
    told = watched([*run, Print(at + 1, "step 200 loss 2.5"), Print(at + 2, "saving a checkpoint")], at + 2000)
    assert [news.limit for _, news in told] == [1.5 * 200]


def test_a_run_that_only_a_monitor_prints_makes_no_step() -> None:
    run = [*STEPS, *(Print(60.0 * beat, f"[09:{beat}] job 4711 is running") for beat in range(1, 30))]
    (_, news), *others = watched(sorted(run, key=lambda each: each.at), 1800)
    assert (news.kind, news.limit, news.step) == ("stalled", 600, 59)
    assert not others


def test_a_watchdog_is_reported_at_once_and_once() -> None:
    word = "[rank3]: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=168)"
    run = [*STEPS, Print(65.0, word), Print(66.0, word)]
    (at, news), *others = watched(run, 80)
    assert (at, news.kind, news.line, news.ranks) == (65, "watchdog", word, ((0, (3,)),))
    assert not others


def test_it_says_when_the_run_goes_on_and_when_it_hangs_again() -> None:
    later = [Print(400.0 + step, f"step {60 + step} loss 2.5") for step in range(60)]
    told = [(at, news.kind, news.seconds) for at, news in watched([*STEPS, *later], 2000)]
    assert told[:2] == [(150, "silent", 91), (400, "resumed", 341)]
    assert [kind for _, kind, _ in told] == ["silent", "resumed", "silent"]
    assert told[2][0] > 459 + 1.5 * 341  # it has seen that such a pause can end


def test_a_line_that_torchrun_passes_on_is_the_one_in_the_rank_s_file() -> None:
    watch = Watch(Limits(), 0.0)
    for step in range(20):
        watch.took(b"step %d loss 2.5\n" % step, float(step), 0)
        if step == 19:
            watch.look(19.0)
            watch.took(b"[default0]:step 19 loss 2.5\n", 19.5)
        assert watch.look(step + 0.9) is None
    assert watch.output.limit == 90


def test_a_silence_in_which_the_ranks_work_is_a_hang_after_more_time() -> None:
    watch, now = Watch(Limits(), 0.0), 0.0
    for step in range(20):
        now += 1
        watch.took(b"step %d loss 2.5\n" % step, now)
        assert watch.look(now) is None
    news = watch.look(now + 91)
    assert news is not None
    assert (news.kind, news.limit, watch.may_be_work(news)) == ("silent", 90, True)
    watch.withdraw_silence()
    assert watch.look(now + 599) is None
    news = watch.look(now + 601)
    assert news is not None
    assert (news.kind, news.limit, watch.may_be_work(news)) == ("silent", 600, False)
    watch.took(b"step 20 loss 2.5\n", now + 700)
    resumed = watch.look(now + 700)
    assert resumed is not None
    assert resumed.kind == "resumed"


def test_a_silence_that_was_borne_says_nothing_when_it_ends_and_the_next_is_looked_at_again() -> None:
    watch, now = Watch(Limits(), 0.0), 0.0
    for round_ in range(3):
        for step in range(20):
            now += 1
            watch.took(b"step %d loss 2.5\n" % (100 * round_ + step), now)
            assert watch.look(now) is None
        news = watch.look(now + 91)
        assert news is not None
        assert news.limit == 90
        watch.withdraw_silence()
        now += 200


@pytest.mark.parametrize(
    "stacks",
    [
        b'Process 7: python train.py\nPython v3.11.7 (/usr/bin/python)\n\nThread 9 (active): "tqdm"\n    run (monitor.py:%d)\n'
        b'Thread 7 (idle): "MainThread"\n    backward (graph.py:865)\n    <module> (train.py:88)\n',
        b'Thread 0x00007f5c81ffb6c0 (most recent call first):\n  File "monitor.py", line %d in run\n\n'
        b'Current thread 0x00007f5c98a4cb80 (most recent call first):\n  File "graph.py", line 865 in backward\n'
        b'  File "train.py", line 88 in <module>\n',
    ],
)  # fmt: skip
def test_only_the_main_thread_shows_that_a_rank_moves(stacks: bytes) -> None:
    assert client.place_of(stacks % 3) == client.place_of(stacks % 4) != b""
    assert client.place_of(stacks.replace(b"88", b"89") % 3) != client.place_of(stacks % 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "moves"),
    [
        ("time.sleep(60)", False),
        ("lock = threading.Lock(); lock.acquire(); lock.acquire()", False),
        ("end = time.time() + 60\nwhile time.time() < end:\n    sum(range(300))\n    sorted(range(300))", True),
    ],
)
def test_a_rank_moves_while_it_works(tmp_path: Path, does: str, moves: bool) -> None:
    environment = client.hooked(str(tmp_path), {**os.environ, "PATH": "/usr/bin:/bin"})
    # On the line of what it does, so that the end of the print is no move.
    script = f"import sys, threading, time\nprint('begun', flush=True); {does}\n"
    with subprocess.Popen(
        ["/bin/sh", "-c", 'RANK=3 "$0" -c "$1"; true', sys.executable, script],
        env=environment,
        stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert client.moving(process.pid, str(tmp_path / "stacks")) == ([3] if moves else [])
        finally:
            os.killpg(process.pid, 9)


def test_which_ranks_are_silent_since_when() -> None:
    watch = Watch(Limits(), 0.0)
    for step in range(20):
        ranks = (0, 1, 2, 3) if step < 15 else (0, 1, 3)
        watch.took(b"".join(b"[rank%d]: step %d\n" % (rank, step) for rank in ranks), float(step))
        assert watch.look(float(step)) is None
    news = watch.look(110.0)
    assert news is not None
    assert news.ranks == ((96.0, (2,)), (91.0, (0, 1, 3)))


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"step 120 loss 2.5", 120), (b"iteration      120/    1000 |", 120), (b"global_step=7", 7), (b"{'loss': 2.31}", None),
        ("第 120 步，损失：2.5".encode(), 120), (b" 12%|#2   | 120/1000 [00:10<01:20, 12it/s]", None),
    ],
)  # fmt: skip
def test_steps_of_usual_lines(line: bytes, number: int | None) -> None:
    step = client.step_in(b"something above\n" + line)
    assert step is not None
    assert step.number == number


def test_other_lines_show_no_step() -> None:
    assert client.step_in(b"loading the model\nGPU 3 is warm\n") is None


def test_the_engine_gets_a_line_about_the_silence() -> None:
    news = News("silent", 94.6, 90.0, step=341)
    assert news.for_engine == "torchtriage watch: no output for 95 s (limit 90 s); reached 341\n"
    assert news._replace(kind="watchdog").for_engine == ""


def test_the_words_of_watchdogs_are_those_of_the_knowledge_base() -> None:
    patterns = built_in_knowledge().vocabulary.patterns("watchdog-first-words")
    assert client._WATCHDOG.pattern.decode() == "|".join(pattern.regex for pattern in patterns)


def followed(file: Followed) -> bytes:
    return b"".join(file.read())


def test_a_file_that_is_renamed_and_made_again_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("one\n")
    file = Followed(str(path))
    assert followed(file) == b"one\n"
    with path.open("a") as old:
        old.write("two\n")
    path.rename(tmp_path / "train.log.1")
    path.write_text("three\n")
    assert followed(file) == b"two\nthree\n"
    assert followed(file) == b""


def test_a_file_that_is_cut_to_nothing_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("one line\n")
    file = Followed(str(path))
    assert followed(file) == b"one line\n"
    os.truncate(path, 0)
    with path.open("a") as again:
        again.write("two\n")
    assert followed(file) == b"two\n"


def test_a_file_that_goes_and_comes_back_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("one\n")
    file = Followed(str(path))
    assert followed(file) == b"one\n"
    path.unlink()
    assert followed(file) == b""
    assert file.gone
    path.write_text("two, and it is longer\n")
    assert followed(file).endswith(b"longer\n")
    assert not file.gone


def test_files_of_ranks_that_come_later_are_followed(tmp_path: Path) -> None:
    watch, follower = Watch(Limits(), 0.0), Follower([str(tmp_path)], 0.0)
    for rank in (0, 3):
        place = tmp_path / "none_x1" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        (place / "stdout.log").write_text("step 7 loss 2.5\n")
    follower.read(watch, 6.0)
    watch.look(6.0)
    news = watch.look(700.0)
    assert news is not None
    assert (news.step, news.ranks) == (7, ((694.0, (0, 3)),))


def test_of_what_is_there_already_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("wb") as file:
        file.truncate(5 << 30)  # a hole, which takes no place on the disk
        file.seek(0, 2)
        file.write(b"\nstep 7 loss 2.5\n")
    watch, follower = Watch(Limits(), 0.0), Follower([str(path)], 0.0)
    follower.read(watch, 1.0)
    watch.look(1.0)
    assert (news := watch.look(700.0)) is not None
    assert news.step == 7


def test_processes_that_write_files_are_at_work(tmp_path: Path) -> None:
    now = 0.0
    work = Work(lambda: [os.getpid()], lambda: now)
    assert work()  # not known yet
    now = 10.0
    assert not work()
    (tmp_path / "checkpoint").write_bytes(bytes(2 * Work.ENOUGH))
    assert not work()  # until the window is over
    now = 20.0
    assert work()
    now = 30.0
    assert not work()


def test_a_process_is_found_with_all_below_it() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        inner = int(shell.stdout.readline())
        assert client.tree_of(shell.pid) == [shell.pid, inner]
        os.kill(inner, 9)
