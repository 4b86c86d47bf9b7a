"""`torchtriage watch`: follows the logs of a running job and reports when it hangs and when it continues."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.client.torchtriage_client import Follower, Limits, News, Step, Watch, Work, moving, tree_of
from torchtriage.domain.rank_set import RankSet
from torchtriage.errors import BadInput, TriageError

if TYPE_CHECKING:
    from torchtriage.domain.verdict import Verdict
    from torchtriage.reading.sources import LogFile, Run

OWN_FILE = "torchtriage-watch.log"  # name of the file that passes the watch's own observations to the engine
_MAX_GROUPS = 4  # number of groups printed; a group is the ranks that became silent at the same time
_LINES_LOOKED_AT = 40  # number of lines of new output searched for a step
_Words = tuple[str, str]
_SILENT: _Words = (
    "no output for {seconds} s (limit {limit} s{usual})",
    "已有 {seconds} 秒没有输出（时限 {limit} 秒{usual}）",
)
_STALLED: _Words = (
    "output, but no step for {seconds} s (limit {limit} s{usual})",
    "有输出，但已有 {seconds} 秒没有新的训练步（时限 {limit} 秒{usual}）",
)
_WATCHDOG: _Words = ("a watchdog reports: {line}", "watchdog 报告：{line}")
_RESUMED: _Words = ("the run continues after {seconds} s", "{seconds} 秒后任务继续")
_SENTENCES = {"silent": _SILENT, "stalled": _STALLED, "watchdog": _WATCHDOG, "resumed": _RESUMED}
_WORKS: _Words = (
    "no output for {seconds} s, but the stack of {ranks} changes: no hang before {patience} s",
    "已有 {seconds} 秒没有输出，但 {ranks} 的栈在变化：{patience} 秒之前不算卡住",
)
_USUAL: _Words = (", usually {usual}", "，平时 {usual}")
_STEP: _Words = ("; last step {step}", "；最后一步是第 {step} 步")
_RANKS: _Words = ("silent for {seconds} s: {ranks}", "{ranks} 已 {seconds} 秒没有输出")
_PROVISIONAL: _Words = ("Provisional, as the run has not ended:", "任务尚未结束，以下是临时结论：")
_ENDED: _Words = ("the watched processes have ended", "被监视的进程已结束")
_GONE: _Words = ("the watched files are gone", "被监视的文件已不存在")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    limits = Limits()
    parser = subparsers.add_parser(
        "watch",
        help="follow the logs of a running job and report a hang",
        description="Follow the logs of one running job. If it has no output or no new step for longer than usual, or "
        "if a watchdog reports a hang, print that with a provisional verdict. Print also when the job continues. Ends "
        "with a last verdict, on Ctrl-C or when the processes of --pid have ended. Needs no server.",
    )
    parser.add_argument("paths", nargs="+", metavar="LOG", help="files and folders of one job; may be created later")
    parser.add_argument(
        "--pid",
        type=int,
        action="append",
        metavar="PID",
        help="end when this process has ended; repeat it to wait for several processes",
    )
    for name, value, what in (
        ("silence", limits.silence, "minimum seconds without output that count as a hang"),
        ("factor", limits.factor, "multiple of the usual pause that counts as a hang"),
        ("patience", limits.patience, "seconds allowed at the start, after a new kind of line, and during file access"),
        ("poll", 1.0, "seconds between two checks"),
    ):
        parser.add_argument(f"--{name}", type=_positive, default=value, metavar="N", help=f"{what} ({value:g})")
    parser.add_argument("--json", action="store_true", help="print one JSON object per report, each on one line")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    parser.set_defaults(run=run)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("not above 0")
    return value


def run(options: argparse.Namespace) -> int:
    """Follows the logs until the processes of --pid end, the files are gone, or a signal arrives. Raises BadInput."""
    for path in options.paths:
        parent = Path(path).absolute().parent
        if not Path(path).exists() and not parent.is_dir():
            raise BadInput(f"{path}: no such file or folder")
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _Job(options).follow(stop.wait)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


class _Job:
    """The job that is watched."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._zh = options.lang == "zh"
        self._pids: list[int] = options.pid or []
        self._limits = Limits(options.silence, options.factor, options.patience)

    def follow(self, wait: Callable[[float], bool]) -> None:
        """Checks the logs repeatedly. `wait` waits for a number of seconds and returns True if the watch must end."""
        options, now = self._options, time.monotonic()
        follower = Follower(options.paths, now)
        written = follower.newest()
        # The job may have hung before the watch started.
        began = now - max(0.0, time.time() - written) if written else now
        watch = Watch(self._limits, began, last_step)
        follower.read(watch, began)
        watch.look(began)
        work = Work(lambda: [each for pid in self._pids for each in tree_of(pid)])
        at_work = work if self._pids else bool
        gone_since: float | None = None
        while True:
            now = time.monotonic()
            follower.read(watch, now)
            news = watch.look(now, at_work)
            if news and not self._is_work(news, watch):
                self._report(news)
            gone_since = (gone_since or now) if follower.gone else None
            if gone_since is not None and now - gone_since > self._limits.silence:
                return self._say(_GONE)
            if self._pids and not any(map(_runs, self._pids)):
                follower.read(watch, now)
                self._say(_ENDED)
                return self._verdict(None)
            if wait(options.poll):
                return self._verdict(None)

    def _is_work(self, news: News, watch: Watch) -> bool:
        """Returns whether a silence is work: py-spy shows that the stacks of ranks below the processes change. If so,
        prints it."""
        if not watch.may_be_work(news):
            return False
        ranks = RankSet.of(rank for pid in self._pids for rank in moving(pid, ""))
        if not ranks:
            return False
        watch.withdraw_silence()
        named = f"rank{'' if len(ranks) == 1 or self._zh else 's'} {ranks}"
        values = {"seconds": f"{news.seconds:.0f}", "ranks": named, "patience": f"{self._limits.patience:.0f}"}
        self._say((_WORKS[0].format(**values), _WORKS[1].format(**values)))
        return True

    def _report(self, news: News) -> None:
        if not self._options.json:
            for line in self._lines(news):
                print(line, flush=True)
        elif news.kind == "resumed":
            print(json.dumps(as_json(news)), flush=True)
        if news.kind != "resumed":
            self._verdict(news)

    def _say(self, words: _Words) -> None:
        if not self._options.json:
            print(f"torchtriage: {_clock()}  {words[self._zh]}", flush=True)

    def _lines(self, news: News) -> Iterator[str]:
        zh = self._zh
        usual = _USUAL[zh].format(usual=f"{news.usual:.0f} s") if news.usual is not None else ""
        values = {"seconds": f"{news.seconds:.0f}", "limit": f"{news.limit:.0f}", "usual": usual, "line": news.line}
        step = "" if news.step is None or news.kind == "resumed" else _STEP[zh].format(step=news.step)
        yield f"torchtriage: {_clock()}  {_SENTENCES[news.kind][zh].format(**values)}{step}"
        if news.kind != "resumed":
            for seconds, ranks in news.ranks[:_MAX_GROUPS]:
                named = f"rank{'' if len(ranks) == 1 or zh else 's'} {RankSet.of(ranks)}"
                yield f"torchtriage:   {_RANKS[zh].format(seconds=f'{seconds:.0f}', ranks=named)}"
            yield f"torchtriage:   {_PROVISIONAL[zh]}"

    def _verdict(self, news: News | None) -> None:
        """Prints the verdict on the logs so far. A child process does this, so that this process stays small."""
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
            return
        try:
            self._print_verdict(news)
            sys.stdout.flush()
        except TriageError as error:
            print(f"torchtriage: {error.message}", file=sys.stderr, flush=True)
        finally:
            os._exit(0)

    def _print_verdict(self, news: News | None) -> None:
        from torchtriage.cli.start_engine import start_engine
        from torchtriage.cli.verdict_report import WIDTH, report
        from torchtriage.engine import PROVISIONAL

        goes_on = news is not None or (bool(self._pids) and any(map(_runs, self._pids)))
        known = {PROVISIONAL: "true"} if goes_on else {}
        verdict = start_engine().triage(watched_run(self._options.paths, news), self._options.lang, known)
        if self._options.json:
            print(json.dumps(as_json(news, verdict), ensure_ascii=False))
            return
        terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
        print(report(verdict, self._options.lang, terminal and "NO_COLOR" not in os.environ, width))


def last_step(tail: bytes) -> Step | None:
    """Returns the last training step that these lines show, or None."""
    from torchtriage.facts import progress

    for line in reversed(tail.decode("utf-8", "replace").splitlines()[-_LINES_LOOKED_AT:]):
        text = progress.newest(line)
        if progress.progressed(text) and progress.counts(progress.counting(text))[0]:
            # The number of a progress bar may be that of an evaluation.
            number = None if progress.BAR in text else progress.step(text)
            return Step(text.encode() if number is None else str(number).encode(), number)
    return None


def watched_run(paths: Sequence[str], news: News | None) -> Run:
    """Returns the logs as one run. The watch's own observations follow as a file of their own."""
    from torchtriage.errors import UnreadableLog
    from torchtriage.reading.sources import LogFile, Run, open_path

    runs = []
    for path in paths:
        with contextlib.suppress(UnreadableLog):  # the log may still be empty
            runs.append((path, open_path(Path(path))))
    own = news.for_engine.encode() if news else b""

    def files() -> Iterator[LogFile]:
        for path, one in runs:
            for file in one.files():
                name = file.name if len(runs) == 1 else f"{path}/{file.name}" if one.several else path
                yield replace(file, name=name)
        if own:
            yield LogFile(OWN_FILE, lambda: iter((own,)))

    several = bool(own) or len(runs) > 1 or any(one.several for _, one in runs)
    return Run(" ".join(paths), files, several=several)


def as_json(news: News | None, verdict: Verdict | None = None) -> dict[str, object]:
    """Returns a report as a JSON object."""
    event: dict[str, object] = {"event": news.kind if news else "ended", "at": datetime.now().astimezone().isoformat()}
    if news:
        event |= {"seconds": round(news.seconds, 1), "limit": round(news.limit, 1), "usual": news.usual}
        event |= {"step": news.step, "line": news.line or None}
        event["ranks"] = [{"ranks": str(RankSet.of(ranks)), "seconds": ago} for ago, ranks in news.ranks]
    return event | ({"verdict": verdict.as_dict()} if verdict else {})


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def _runs(pid: int) -> bool:
    """Returns whether a process is alive. A zombie is not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return False
    except (OSError, IndexError):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
