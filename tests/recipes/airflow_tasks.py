"""Runs the recipe's operator and retry policy as Airflow does, and prints what they tell it. `airflow_tasks.py WHAT STATUS`"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

what, status = sys.argv[1], int(sys.argv[2])
context: Any = {
    "ti": SimpleNamespace(dag_id="nightly", run_id="manual__1", task_id="train", try_number=2, map_index=-1),
    "exception": None,
}
told: dict[str, Any] = {}
if what == "operator":
    from torchtriage_airflow import TrainingOperator

    script = "import os, signal; print(os.environ['EPOCHS']); open(os.environ['STARTED'], 'w'); "
    script += "signal.pause()" if status < 0 else f"raise SystemExit({status})"
    started = os.environ["TOLD"] + ".started"
    variables = {"EPOCHS": "3", "STARTED": started}
    operator = TrainingOperator(task_id="train", command=[sys.executable, "-c", script], env=variables, retries=20)

    def kill() -> None:
        while not os.path.exists(started):
            time.sleep(0.05)
        operator.on_kill()

    if status < 0:
        threading.Thread(target=kill).start()
    try:
        operator.execute(context)
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        told = {"raised": [one.__name__ for one in type(error).__mro__[:2]], "says": str(error)}
elif what == "policy":
    from torchtriage_retry_policy import TriageRetryPolicy

    policy = TriageRetryPolicy.deserialize(TriageRetryPolicy().serialize())
    try:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    except RuntimeError as error:
        found = policy.evaluate(exception=error, try_number=2, max_tries=20, context=context)
    delay = found.retry_delay.total_seconds() if found.retry_delay else None
    told = {"action": found.action.value, "delay": delay, "reason": found.reason}
else:
    from torchtriage_airflow import report_failure, report_success

    context["exception"] = ValueError("no such sample")
    report_failure(context)
    report_success(context)
with open(os.environ["TOLD"], "w") as file:
    json.dump(told, file)
