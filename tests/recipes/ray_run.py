"""Fits a trainer whose workers fail some times, by the recipe, and tells what came of it. `ray_run.py FAILURES`"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import torchtriage_ray
from ray.train import RunConfig, ScalingConfig, TrainingFailedError

try:
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
except ImportError:
    from ray.train import DataParallelTrainer

WORKERS = 2
failures, folder = int(sys.argv[1]), tempfile.mkdtemp()
made: list[list[str]] = []


def train() -> None:
    if len(made) <= failures:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def trainer(hosts: frozenset[str]) -> Any:
    made.append(sorted(hosts))  # which travels to the workers with the function
    run = RunConfig(name="bert", storage_path=folder)
    return DataParallelTrainer(train, scaling_config=ScalingConfig(num_workers=WORKERS), run_config=run)


told: dict[str, Any] = {"raised": None}
try:
    torchtriage_ray.fit(trainer)
except TrainingFailedError as error:
    told["raised"] = type(error).__name__
with open(os.environ["TOLD"], "w") as file:
    json.dump({**told, "made": made}, file)
