"""Runs of Ray Train that are started again only where that can help. Beside your script, with torchtriage_client.py.

    from torchtriage_ray import fit
    result = fit(lambda hosts: TorchTrainer(train, run_config=RunConfig(name="bert", storage_path="s3://…"), …))

A run of the same name and storage_path goes on from its latest checkpoint. Each failure is reported and decided about;
a restart makes the trainer anew. In a dry run, or where the service does not answer, the failure is raised as without
us. Ray Train v2. docs/ray.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torchtriage_client as client
from ray.train import TrainingFailedError

_OF_RANKS = re.compile(r"^\[Rank ([\d,]+) Error Snippet\]:\n", re.MULTILINE)


def fit(make_trainer: Callable[[frozenset[str]], Any], name: str = "", most: int = 100) -> Any:
    """Makes a trainer and fits it, again and again as long as a restart is decided, at most `most` times.

    `make_trainer` gets the hosts that are to be left out. `name` names the job, so that its runs can be compared;
    without it, that of the trainer's RunConfig. -> the result of `fit()`. Raises TrainingFailedError as it does.
    """
    facts, labels = client.facts_here()
    facts.setdefault("scheduler", "ray")
    facts.pop("nodes", None)  # the report is of all workers
    if not facts.get("job_id"):
        facts["job_id"] = f"{socket.gethostname()}-{os.getpid()}-{int(time.time())}"
    hosts: frozenset[str] = frozenset()
    attempt = 0
    while True:
        trainer = make_trainer(hosts)
        named = name or str(getattr(getattr(trainer, "run_config", None), "name", None) or "")
        facts.update(attempt=str(attempt), **({"job_name": named} if named else {}))
        try:
            result = trainer.fit()
        except TrainingFailedError as error:
            decision = _decision(error, facts, labels)
            if attempt >= most or not decision or not client.restarts(decision):
                raise
        else:
            _tell_good_end(facts)
            return result
        hosts |= frozenset(client.hosts_of(decision))
        time.sleep(max(0, int(decision.get("delay_seconds") or 0)))
        attempt += 1


def log_of(error: TrainingFailedError) -> str:
    """Returns a failure as a log: the exception of each worker, with its rank before each line.

    Ray has the tracebacks only in its text, one for all ranks with the same exception. The exceptions have none.
    """
    parts = _OF_RANKS.split(str(error))
    if len(parts) == 1:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))
    found = ((parts[at], parts[at + 1]) for at in range(1, len(parts), 2))
    return "".join(
        f"[rank{rank}]: {line}\n"
        for ranks, text in found
        for rank in ranks.split(",")
        for line in text.splitlines()
        if line
    )


def _decision(error: TrainingFailedError, facts: dict[str, str], labels: list[str]) -> dict[str, Any]:
    """Returns the decision about a failure, or an empty dict if the service makes none."""
    try:
        settings = client.settings_of(argparse.Namespace(), 60)
        if not settings.url:
            raise ValueError("TORCHTRIAGE_URL is not set")
        query = client.query_of(settings, {**facts, "exit_code": "1"}, labels)
        log = client.Member("workers.log", [log_of(error).encode("utf-8", "replace")])
        incident = client.deliver_now(settings, client.keep(settings, query, [log]))
        client.show(client.summary_lines(incident), sys.stderr)
        decision = client.decision_of(settings, incident)
    except (OSError, ValueError, client.Undelivered) as problem:
        client.say(str(problem))
        return {}
    client.say(client.decided(decision))
    return decision


def _tell_good_end(facts: dict[str, str]) -> None:
    """By which the decisions about earlier attempts are graded."""
    settings = client.settings_of(argparse.Namespace(), 60)
    if settings.url and facts.get("job_name"):
        told = {name: facts[name] for name in ("job_name", "job_id", "cluster") if facts.get(name)}
        client.send_summary(settings, json.dumps(told))
