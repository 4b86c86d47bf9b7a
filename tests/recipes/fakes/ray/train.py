"""ray.train, version 2: a trainer that runs its function for each worker, and raises what workers raise as Ray does."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class TrainingFailedError(Exception):
    pass


class WorkerGroupError(TrainingFailedError):
    def __init__(self, error_message: str, worker_failures: dict[int, Exception]) -> None:
        super().__init__("Training failed due to worker errors:\n" + error_message)
        self.worker_failures = worker_failures


@dataclass
class ScalingConfig:
    num_workers: int = 1


@dataclass
class RunConfig:
    name: str | None = None
    storage_path: str | None = None


class DataParallelTrainer:
    def __init__(
        self, train: Callable[[], Any], *, scaling_config: ScalingConfig, run_config: RunConfig | None = None
    ) -> None:
        self.train, self.workers, self.run_config = train, scaling_config.num_workers, run_config or RunConfig()

    def fit(self) -> str:
        failures: dict[int, Exception] = {}
        ranks: dict[str, list[str]] = {}
        for rank in range(self.workers):
            try:
                self.train()
            except Exception as error:  # noqa: BLE001 - whatever a worker raises is raised for all
                ranks.setdefault("".join(traceback.format_exception(error)), []).append(str(rank))
                failures[rank] = error.with_traceback(None)
        if failures:
            told = [f"[Rank {','.join(of)} Error Snippet]:\n{text}" for text, of in ranks.items()]
            raise WorkerGroupError("\n".join(told), failures)
        return "result"
