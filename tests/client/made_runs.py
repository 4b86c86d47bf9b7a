"""Made runs as a watch sees them: what a training job prints and when, by a clock of its own, so that nothing waits.

A run starts, trains, evaluates and saves; a seed chooses how it prints, how long its steps are, and which pauses it
makes. Pauses of up to nine minutes are announced by a line, or the processes read and write files meanwhile; of those
that are neither, the longest takes 85 s."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from torchtriage.client.torchtriage_client import Limits, News, Watch

POLL = 1.0  # seconds
_SAYS_STEP = (
    "step {step} loss {loss:.4f}",
    "[default{rank}]:Epoch {epoch} step {step}/{all} loss {loss:.3f} lr 1e-4",
    " iteration {step:8}/{all:8} | elapsed time per iteration (ms): 812.3 | lm loss: {loss:.6E} |",
    "{{'loss': {loss:.4f}, 'grad_norm': 0.71, 'learning_rate': 5e-05, 'epoch': {epoch}.21}}",
    "\r {percent}%|###   | {step}/{all} [12:11<48:02,  1.31it/s]",
    "2026-05-01 09:{minute:02}:11,310 INFO trainer step: {step} tokens/s {loss:.1f}",
    "第 {step} 步，损失：{loss:.4f}",
)
_STARTS = ("loading the model", "world size 8", "NCCL version 2.21.5+cuda12.4", "building the data set", "warming up")
_EVALUATES = ("***** Running Evaluation *****", "开始验证", "evaluating on 2000 samples")
_SAVES = ("saving checkpoint at iteration {step}", "Saving model to out/checkpoint-{step}", "保存 checkpoint")
_MONITOR = "[2026-05-01 09:{beat:02}:05] MONITOR: job 4711 is running, {beat} min"
_WATCHDOG = "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={step})"


@dataclass(frozen=True)
class Print:
    """What is printed at a time; `works` says that files are read and written all the time before it, `moves` that the
    ranks' stacks change meanwhile."""

    at: float
    text: str
    works: bool = False
    moves: bool = False


def made_run(seed: int, hours: float = 1.5, silent_evaluations: bool = False) -> Iterator[Print]:
    """Yields what a run without failure prints. `silent_evaluations`: those of up to nine minutes are not announced,
    and touch no files, so that only the ranks' stacks tell them from a hang."""
    chance = random.Random(seed)
    now, end = 0.0, hours * 3600
    for text in chance.sample(_STARTS, chance.randint(1, len(_STARTS))):
        now += chance.uniform(0.2, 40)
        yield Print(now, text)
    says, step_time = chance.choice(_SAYS_STEP), 10 ** chance.uniform(-1.0, 2.3)  # 0.1 to 200 s
    every = max(1, round(chance.uniform(1, 20) / step_time))
    now += chance.choice((chance.uniform(1, 30), chance.uniform(60, 540 - 1.5 * step_time)))  # it compiles
    evaluates, saves = chance.randint(20, 120), chance.randint(25, 160)  # after so many lines of progress
    for line in count(1):
        step = line * every
        for _ in range(min(every, 20)):
            now += step_time * every / min(every, 20) * chance.lognormvariate(0, 0.25)
        if chance.random() < 0.01:
            now += min(3 * step_time, 80) if step_time < 30 else step_time  # it waits for data
        if now > end:
            return
        yield Print(now, _said(says, step, chance))
        if line % evaluates == 0:
            for printed in _evaluation(now, chance, silent_evaluations):
                now = printed.at
                yield printed
        if line % saves == 0:
            for printed in _checkpoint(now, step, chance):
                now = printed.at
                yield printed


def made_hang(seed: int, hours: float = 1.5) -> tuple[list[Print], float]:
    """Returns the same, but from a time on nothing is printed, or only what a monitor says every minute, or the watchdog after
    ten minutes; that time."""
    chance = random.Random(f"hang {seed}")
    run = list(made_run(seed, hours))
    cut = chance.randint(min(40, len(run) - 1), len(run) - 1)
    kept = run[: cut + 1]
    since = kept[-1].at
    kind = chance.random()
    if kind < 0.15:
        kept += [Print(since + 60 * beat, _MONITOR.format(beat=beat)) for beat in range(1, 60)]
    elif kind < 0.4:
        text = _WATCHDOG.format(rank=chance.randrange(8), step=chance.randrange(5000))
        kept.append(Print(since + 600, text))
    return kept, since


def watched(run: list[Print], until: float, stacks: bool = False) -> list[tuple[float, News]]:
    """Returns what a watch tells of a run that is looked at until then, each with its time. `stacks`: it can have them."""
    watch, news = Watch(Limits(), 0.0), list[tuple[float, News]]()
    at, now = 0, 0.0
    while now < until:
        now += POLL
        while at < len(run) and run[at].at <= now:
            watch.took(f"{run[at].text}\n".encode(), now)
            at += 1
        works = at < len(run) and run[at].works
        if found := watch.look(now, lambda works=works: works):  # type: ignore[misc]
            if stacks and watch.may_be_work(found) and at < len(run) and run[at].moves:
                watch.withdraw_silence()
                continue
            news.append((now, found))
    return news


def _said(says: str, step: int, chance: random.Random) -> str:
    values = {"rank": chance.randrange(8), "epoch": step // 1000, "all": 100_000, "percent": step % 100}
    return says.format(step=step, loss=chance.uniform(0.5, 3), minute=step % 60, **values)


def _evaluation(now: float, chance: random.Random, silent: bool) -> Iterator[Print]:
    kind = "silent" if silent else chance.choice(("announced", "with a bar", "reads files", "short"))
    if kind == "announced":
        yield Print(now + 0.1, chance.choice(_EVALUATES))
        yield Print(now + chance.uniform(20, 540), "eval loss 2.31 accuracy 0.41")
    elif kind == "with a bar":
        at = now
        for part in range(0, 101, 5):
            at += chance.uniform(2, 60)
            yield Print(at, f"\reval {part}%|##   | {part}/100 [00:10<00:20]")
    elif kind == "reads files":
        yield Print(now + chance.uniform(60, 540), "eval loss 2.31", works=True)
    else:
        yield Print(
            now + (chance.uniform(100, 540) if silent else chance.uniform(5, 85)), "eval loss 2.31", moves=silent
        )


def _checkpoint(now: float, step: int, chance: random.Random) -> Iterator[Print]:
    kind = chance.choice(("announced", "writes files", "in the background", "short"))
    if kind == "announced":
        yield Print(now + 0.1, chance.choice(_SAVES).format(step=step))
        yield Print(now + chance.uniform(20, 540), f"saved after {chance.uniform(20, 500):.1f} s")
    elif kind == "writes files":
        yield Print(now + chance.uniform(60, 540), "saved", works=True)
    elif kind == "short":
        yield Print(now + chance.uniform(5, 85), "saved")
