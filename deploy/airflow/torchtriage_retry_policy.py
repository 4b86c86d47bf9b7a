"""A retry policy for tasks that train in Airflow's own process. Airflow 3.3 or newer; beside torchtriage_airflow.py.

    @task(retries=20, retry_policy=TriageRetryPolicy(), on_success_callback=report_success)
    def train(): …

It reports the exception's traceback, asks for a decision, and retries, after the delay that was decided, or fails. In a
dry run, or where the service does not answer, Airflow does what it does without. docs/airflow.md
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torchtriage_airflow as tasks
import torchtriage_client as client


class TriageRetryPolicy(RetryPolicy):
    """Has no options: the policy is the service's."""

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any | None = None
    ) -> RetryDecision:
        if context is None:
            return RetryDecision.default()
        try:
            decision = client.decision_of(tasks.settings_here(), tasks.report(context, exception))
        except (OSError, ValueError, client.Undelivered) as error:
            client.say(str(error))
            return RetryDecision.default()
        if decision.get("mode") != "enforce":
            client.say(client.decided(decision))
            return RetryDecision.default()
        if client.restarts(decision):
            seconds = decision.get("delay_seconds") or 0
            return RetryDecision.retry(timedelta(seconds=seconds) if seconds else None, client.decided(decision))
        return RetryDecision.fail(client.decided(decision))

    def serialize(self) -> dict[str, Any]:
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> TriageRetryPolicy:
        return cls()
