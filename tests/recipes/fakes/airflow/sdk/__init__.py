"""airflow.sdk: an operator refuses options that it does not know, and templated fields that it has no attribute of."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

_OPTIONS = {"retries", "retry_delay", "retry_policy", "on_failure_callback", "on_retry_callback", "on_success_callback"}


class BaseOperator:
    template_fields: Any = ()

    def __init__(self, *, task_id: str, **options: Any) -> None:
        if unknown := set(options) - _OPTIONS:
            raise TypeError(f"Invalid arguments were passed to {type(self).__name__}: {unknown}")
        self.task_id = task_id

    def __init_subclass__(cls) -> None:
        made = cls.__init__

        def checked(self: BaseOperator, **options: Any) -> None:
            made(self, **options)
            for name in self.template_fields:
                if not hasattr(self, name):
                    raise AttributeError(f"{name!r} is in template_fields, but is no attribute of {cls.__name__}")

        cls.__init__ = checked  # type: ignore[method-assign]


class RetryAction(Enum):
    RETRY = "retry"
    FAIL = "fail"
    DEFAULT = "default"


@dataclass(frozen=True)
class RetryDecision:
    action: RetryAction = RetryAction.DEFAULT
    retry_delay: timedelta | None = None
    reason: str | None = None

    @classmethod
    def fail(cls, reason: str | None = None) -> RetryDecision:
        return cls(RetryAction.FAIL, reason=reason)

    @classmethod
    def retry(cls, delay: timedelta | None = None, reason: str | None = None) -> RetryDecision:
        return cls(RetryAction.RETRY, delay, reason)

    @classmethod
    def default(cls) -> RetryDecision:
        return cls()


class RetryPolicy(abc.ABC):
    @abc.abstractmethod
    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Any = None
    ) -> RetryDecision: ...
