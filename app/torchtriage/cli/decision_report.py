"""Prints a decision as text for people, and defines options shared by the commands that decide."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from torchtriage.decision.history import read_history
from torchtriage.decision.policy import Policy, load_policy
from torchtriage.decision.wording import reason, what
from torchtriage.domain.decision import AttemptRecord, Decision
from torchtriage.domain.entry import Language
from torchtriage.errors import BadInput

SETTING = "TRIAGE_POLICY_FILE"
_LABELS = {
    "decision": ("Decision", "决策"),
    "why": ("Reason", "理由"),
    "delay": ("Delay", "等待"),
    "left": ("Restarts left", "剩余重启"),
}
_SECONDS = ("{} s before the restart", "重启前等待 {} 秒")
_LEFT = (
    "{job} for the job, {progress} without progress, {cause} for this cause",
    "任务 {job} 次，无进展时 {progress} 次，此原因 {cause} 次",
)
_COLUMNS = (15, 10)  # of the labels, in English and in Chinese


def decision_lines(decision: Decision, lang: Language) -> list[str]:
    """Returns the decision, its reason, the delay before a restart in seconds, and the restarts that are left."""
    chinese = lang == "zh"
    parts = [("decision", what(decision, lang)), ("why", reason(decision, lang))]
    if decision.delay_seconds:
        parts.append(("delay", _SECONDS[chinese].format(decision.delay_seconds)))
    budget = decision.budget
    parts.append(("left", _LEFT[chinese].format(job=budget.job, progress=budget.progress, cause=budget.cause)))
    return [f"{_padded(_LABELS[name][chinese], chinese)}{text}" for name, text in parts]


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Adds the option --policy."""
    parser.add_argument(
        "--policy", metavar="FILE", help=f"the policy, in YAML; options not set in it keep their defaults (${SETTING})"
    )


def policy_of(options: argparse.Namespace) -> Policy:
    """Returns the policy of --policy, else of the environment variable, else the built-in one. Raises SettingError."""
    if options.policy:
        return load_policy(Path(options.policy))
    named = os.environ.get(SETTING, "").strip()
    return load_policy(Path(named).expanduser() if named else None, SETTING)


def history_in(path: str | None, missing: bool = False) -> tuple[AttemptRecord, ...]:
    """Returns the attempts in a file of --history. If there is no such file and `missing` is true, returns none.

    Raises BadInput.
    """
    if path is None:
        return ()
    try:
        return read_history(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        if missing:
            return ()
        raise BadInput(f"--history: {path}: no such file") from None
    except OSError as error:
        raise BadInput(f"--history: {path}: {error.strerror}") from None
    except ValueError as error:  # also if the file is not UTF-8
        raise BadInput(f"--history: {path}: {error}") from None


def _padded(label: str, chinese: bool) -> str:
    return label + " " * (_COLUMNS[chinese] - len(label) * (2 if chinese else 1))
