"""`torchtriage decide`: reads the logs of a job's attempts and decides what to do after the last one. Needs no
server."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from torchtriage.cli.arguments import whole_number
from torchtriage.cli.progress import Progress, add_quiet
from torchtriage.cli.start_engine import start_engine
from torchtriage.cli.triage import opened
from torchtriage.errors import BadInput

if TYPE_CHECKING:
    from torchtriage.domain.decision import Decision

_STATUS = {"stop": 11, "wait": 14}  # all other actions are restarts and exit with RESTART
RESTART = 10
_EPILOG = """\
exit status with --exit-code:
  10  restart, restart-excluding, restart-from-checkpoint
  11  stop
  14  wait
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "decide",
        help="decide whether to restart a failed job",
        description="Decide what to do after a failed attempt of a job: stop, restart, restart-excluding (hosts),\n"
        "restart-from-checkpoint or wait. Several LOGs are attempts of the job, oldest first; the decision is about\n"
        "the last one. Needs no server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="LOG", help="logs, as for `triage`; - reads standard input (default)"
    )
    parser.add_argument(
        "--attempt",
        type=whole_number(0, 999_999_999),
        metavar="N",
        help="number of the attempt of the last LOG, from 0 (the number of known earlier attempts)",
    )
    parser.add_argument(
        "--history",
        metavar="FILE",
        help="file with the attempts before the first LOG: a JSON list, or lines printed by --json",
    )
    parser.add_argument(
        "--job-exit-code",
        type=int,
        metavar="N",
        help="the exit code of the job; unless it is 0, a log that shows no failure counts as failed",
    )
    from torchtriage.cli.decision_report import add_policy

    add_policy(parser)
    parser.add_argument("--json", action="store_true", help="print the decision as one line of JSON")
    parser.add_argument("--exit-code", action="store_true", help="exit with 10, 11 or 14 (see below)")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the output (en)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the decision. Raises SettingError, BadInput or KnowledgeError."""
    from torchtriage.cli.decision_report import decision_lines
    from torchtriage.decision.wording import decision_json

    decision = _decided(options)
    if options.json:
        print(json.dumps(decision_json(decision, options.lang), ensure_ascii=False))
    else:
        print("\n".join(decision_lines(decision, options.lang)))
    return _STATUS.get(decision.action, RESTART) if options.exit_code else 0


def _decided(options: argparse.Namespace) -> Decision:
    from torchtriage.cli.decision_report import history_in, policy_of
    from torchtriage.decision.decide import decide
    from torchtriage.decision.failure import failure_of, record_of

    policy, history = policy_of(options), list(history_in(options.history))
    paths = options.paths or (["-"] if sys.stdin is None or not sys.stdin.isatty() else [])
    if not paths:
        raise BadInput("no LOG given and standard input is a terminal")
    first = 1 + max((one.attempt for one in history), default=-1)
    if options.attempt is not None:
        first = options.attempt - len(paths) + 1
        if first < 0:
            raise BadInput(f"--attempt: {len(paths)} logs can't be attempts up to {options.attempt}")
    engine = start_engine()
    verdicts = []
    for path in paths:
        with Progress(options.quiet) as progress:
            verdicts.append(engine.triage(opened(path, progress), options.lang))
    history += [record_of(verdict, first + at) for at, verdict in enumerate(verdicts[:-1])]
    failed = options.job_exit_code not in (None, 0)
    return decide(policy, failure_of(verdicts[-1], first + len(paths) - 1, failed), history)
