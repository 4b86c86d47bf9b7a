"""Tasks of Airflow that are tried again only where that can help. Put it beside your DAGs, with torchtriage_client.py.

    TrainingOperator(task_id="train", command=["torchrun", "train.py"], retries=20)     # a command
    default_args = {"on_failure_callback": report_failure}                              # only reports, any operator

Where it is decided to stop, or that a person should look first, a TrainingOperator raises AirflowFailException, so that
Airflow makes no further attempt. Everything else counts against the task's `retries`. docs/airflow.md
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torchtriage_client as client
from airflow.exceptions import AirflowException, AirflowFailException
from airflow.providers.standard.hooks.subprocess import SubprocessHook

try:
    from airflow.sdk import BaseOperator
except ImportError:  # Airflow 2
    from airflow.models import BaseOperator

_NO_FURTHER_ATTEMPT = {11: "stop: another attempt fails in the same way", 14: "wait: a person should look first"}


class TrainingOperator(BaseOperator):
    """Runs a command around which the client is put, and ends the task as is decided. `env` adds variables to those of
    the worker, which must have TORCHTRIAGE_URL; `cwd` is the command's folder (a temporary one)."""

    template_fields: Sequence[str] = ("command", "env", "cwd")

    def __init__(
        self, *, command: Sequence[str], env: dict[str, str] | None = None, cwd: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.command = list(command)
        self.env = env or {}
        self.cwd = cwd
        self._hook: SubprocessHook | None = None

    def execute(self, context: Any) -> None:
        """Raises AirflowFailException where no further attempt is to be made, AirflowException for other failures."""
        told = {"TORCHTRIAGE_" + name.upper(): value for name, value in facts_of(context).items()}
        words = [sys.executable, str(client.__file__), "run", "--decide", "--exit-code", "--", *self.command]
        self._hook = SubprocessHook()
        status = self._hook.run_command(command=words, env={**os.environ, **told, **self.env}, cwd=self.cwd).exit_code
        if status in _NO_FURTHER_ATTEMPT:
            raise AirflowFailException(f"torchtriage decided to {_NO_FURTHER_ATTEMPT[status]}")
        if status != 0:
            raise AirflowException(f"the command ended with {status}")

    def on_kill(self) -> None:
        if self._hook is not None:
            self._hook.send_sigterm()


def report_failure(context: Any) -> None:
    """For `on_failure_callback` and `on_retry_callback`: reports the traceback of a task that failed."""
    try:
        report(context, context.get("exception"))
    except (OSError, ValueError, client.Undelivered) as error:
        client.say(str(error))


def report_success(context: Any) -> None:
    """For `on_success_callback`: tells that a task ended well, by which the decisions about its attempts are graded."""
    settings = settings_here()
    facts = facts_of(context)
    client.send_summary(settings, json.dumps({name: facts[name] for name in ("job_name", "job_id")}))


def report(context: Any, exception: BaseException | None) -> dict[str, Any]:
    """Returns the incident of an exception that ended a task. Raises OSError, ValueError, client.Undelivered."""
    settings = settings_here()
    text = "".join(traceback.format_exception(type(exception), exception, getattr(exception, "__traceback__", None)))
    query = client.query_of(settings, {**facts_of(context), "exit_code": "1"}, [])
    return client.deliver_now(settings, client.keep(settings, query, [client.Member("task.log", [text.encode()])]))


def facts_of(context: Any) -> dict[str, str]:
    """Returns the facts about the task of a context, for the client. All attempts of a task instance are one job."""
    task = context["ti"]
    index = getattr(task, "map_index", -1)
    return {
        "job_id": f"{task.dag_id}/{task.run_id}/{task.task_id}"
        + (f"/{index}" if index is not None and index >= 0 else ""),
        "job_name": f"{task.dag_id}.{task.task_id}",
        "attempt": str(max(0, task.try_number - 1)),
        "scheduler": "airflow",
    }


def settings_here() -> client.Settings:
    """Raises ValueError where there is no address."""
    settings = client.settings_of(argparse.Namespace(), 60)
    if not settings.url:
        raise ValueError("TORCHTRIAGE_URL is not set")
    return settings
