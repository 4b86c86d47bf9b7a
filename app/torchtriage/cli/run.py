"""`torchtriage run`: runs a command. If it fails, triages its output and restarts it if the policy says so."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchtriage.errors import BadInput, TriageError

if TYPE_CHECKING:
    from torchtriage.cli.supervise import Ended
    from torchtriage.decision.policy import Policy
    from torchtriage.domain.decision import AttemptRecord, Decision
    from torchtriage.domain.entry import Language
    from torchtriage.domain.verdict import Verdict
    from torchtriage.reading.sources import Run

_EPILOG = """\
The environment of the command has TORCHTRIAGE_ATTEMPT, and after a restart TORCHTRIAGE_CHECKPOINT and
TORCHTRIAGE_EXCLUDE_HOSTS, if a checkpoint or hosts to exclude are known. The exit status is the
status of the command.
"""
_DRY_RUN = ("dry run: the command is not restarted", "试运行：不会重新启动命令")
_OTHER_HOST = (
    "this host must be excluded, so the command is not restarted here",
    "需要排除本机，因此不在此重新启动命令",
)
_AGAIN = ("attempt {} starts", "开始第 {} 次尝试（从 0 起）")
_ENDED = ("received a signal to end, so the command is not restarted", "收到结束信号，不会重新启动命令")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "run",
        usage="torchtriage run [options] -- COMMAND [ARGUMENT…]",
        help="run a command, and restart it if a restart can help",
        description="Run a command. Its output passes through unchanged. If it fails, print why, decide by the\n"
        "policy, and restart it if the decision is to restart. Needs no server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    from torchtriage.cli.decision_report import add_policy

    add_policy(parser)
    parser.add_argument("--restarts", type=int, metavar="N", help="restart at most N times (as set in the policy)")
    parser.add_argument("--dry-run", action="store_true", help="print the decision, but do not restart the command")
    parser.add_argument(
        "--history",
        metavar="FILE",
        help="read earlier attempts of the job from this file, and add each decision to it as a line of JSON",
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command, after --")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command until it succeeds or must not be restarted, then ends this process as the command ended.

    Returns 126 or 127 if the command cannot be started. Raises BadInput or SettingError before it starts.
    """
    from torchtriage.cli.decision_report import history_in, policy_of
    from torchtriage.cli.supervise import NotKept, hold_signals, release_signals
    from torchtriage.client.torchtriage_client import leave, replace_by

    command = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not command:
        raise BadInput("run: no command given; put it after --, as in: run -- torchrun train.py")
    policy = policy_of(options)
    if options.restarts is not None:
        policy = replace(policy, restarts=max(0, options.restarts))
    history = list(history_in(options.history, missing=True))
    hold_signals()
    try:
        with tempfile.TemporaryDirectory(prefix="torchtriage-run-") as folder:
            try:
                ended = _Attempts(command, options, policy, history, folder).run_until_done()
            except OSError as error:
                _say(f"{command[0]}: {error.strerror}")
                return 127 if isinstance(error, FileNotFoundError) else 126
            for stream in ended.open:
                stream.pass_on_alone()
    except (NotKept, OSError) as error:
        _say(f"cannot keep a copy of the output, so the command runs without triage: {error}")
        release_signals()
        return replace_by(command)
    leave(ended.status)
    raise AssertionError("left already")


class _Attempts:
    """One job: its command and its attempts so far."""

    def __init__(
        self,
        command: Sequence[str],
        options: argparse.Namespace,
        policy: Policy,
        history: list[AttemptRecord],
        folder: str,
    ) -> None:
        self._command, self._options, self._policy, self._folder = command, options, policy, folder
        self._history = history
        self._lang: Language = options.lang

    def run_until_done(self) -> Ended:
        """Runs attempts until one succeeds or must not be repeated. Returns how the last one ended. Raises OSError."""
        from torchtriage.cli.supervise import supervise, wait_for_stop_signal

        variables: dict[str, str] = {}
        for attempt in itertools.count(1 + max((one.attempt for one in self._history), default=-1)):
            environment = {**os.environ, **variables, "TORCHTRIAGE_ATTEMPT": str(attempt)}
            ended = supervise(self._command, environment, self._folder)
            if ended.status == 0 or ended.stopped:
                return ended
            decision = self._decide(ended, attempt)
            if decision is None or not self._is_taken(decision):
                return ended
            if wait_for_stop_signal(decision.delay_seconds):
                _say(_ENDED[self._lang == "zh"])
                return ended
            ended.kill_the_rest()
            self._history.append(decision.attempt)
            variables = _decision_variables(decision)
            _say(_AGAIN[self._lang == "zh"].format(attempt + 1))
        raise AssertionError("there is always a next number")

    def _decide(self, ended: Ended, attempt: int) -> Decision | None:
        """Prints why the attempt failed and what is decided. Returns the decision, or None if the output cannot be
        triaged."""
        from torchtriage.cli.decision_report import decision_lines
        from torchtriage.decision.decide import decide
        from torchtriage.decision.failure import failure_of

        try:
            verdict = _triaged(ended, self._lang)
        except TriageError as error:
            _say(error.message)
            return None
        decision = decide(self._policy, failure_of(verdict, attempt, failed=True), self._history)
        _show(verdict, self._lang)
        for line in decision_lines(decision, self._lang):
            _say(line)
        self._keep(decision)
        return decision

    def _is_taken(self, decision: Decision) -> bool:
        if not decision.restarts:
            return False
        if self._options.dry_run:
            _say(_DRY_RUN[self._lang == "zh"])
            return False
        here = {socket.gethostname(), socket.gethostname().partition(".")[0]}
        if here & {name for host in decision.hosts for name in (host, host.partition(".")[0])}:
            _say(_OTHER_HOST[self._lang == "zh"])
            return False
        return True

    def _keep(self, decision: Decision) -> None:
        from torchtriage.decision.wording import decision_json

        if self._options.history is None:
            return
        try:
            with open(self._options.history, "a", encoding="utf-8") as file:
                print(json.dumps(decision_json(decision, self._lang), ensure_ascii=False), file=file)
        except OSError as error:
            _say(f"--history: {self._options.history}: {error.strerror}")


def _decision_variables(decision: Decision) -> dict[str, str]:
    """Returns the environment variables of the next attempt."""
    found = {"TORCHTRIAGE_CHECKPOINT": decision.checkpoint, "TORCHTRIAGE_EXCLUDE_HOSTS": ",".join(decision.hosts)}
    return {name: value for name, value in found.items() if value}


def _triaged(ended: Ended, lang: Language) -> Verdict:
    """Returns the verdict on the command's output. Raises TriageError."""
    from torchtriage.causality.ending import JOB_STATUS
    from torchtriage.cli.start_engine import start_engine

    shown = ended.status if ended.status >= 0 else 128 - ended.status
    return start_engine().triage(_log(ended), lang, {JOB_STATUS: str(shown)})


def _log(ended: Ended) -> Run:
    """Returns the copy of the output as a run. If a signal ended the command, adds the line that a shell would
    print."""
    from torchtriage.client.torchtriage_client import Member, Pieces
    from torchtriage.reading.sources import CHUNK, LogFile, Run

    members = list(ended.log)
    if ended.status < 0:
        line = f"\ntorchtriage: line 1: {ended.group} {signal.strsignal(-ended.status)}  the command\n"
        members[-1] = Member(members[-1].name, [*members[-1].pieces, line.encode()])

    def chunks(member: Member) -> Iterator[bytes]:
        pieces = Pieces(member.pieces)
        while chunk := pieces.read(CHUNK):
            yield chunk

    def files() -> Iterator[LogFile]:
        for member in members:
            yield LogFile(member.name, lambda member=member: chunks(member))  # type: ignore[misc]

    return Run("output", files, several=len(members) > 1, names=tuple(member.name for member in members))


def _show(verdict: Verdict, lang: Language) -> None:
    from torchtriage.cli.verdict_report import WIDTH, report

    terminal = sys.stderr is not None and sys.stderr.isatty()
    width = shutil.get_terminal_size((WIDTH, 24)).columns if terminal else WIDTH
    with contextlib.suppress(OSError, ValueError):
        print(report(verdict, lang, terminal and "NO_COLOR" not in os.environ, width), file=sys.stderr, flush=True)


def _say(text: str) -> None:
    """Prints one line on standard error, and ignores it if that fails."""
    with contextlib.suppress(OSError, ValueError):
        print(f"torchtriage: {text}", file=sys.stderr, flush=True)
