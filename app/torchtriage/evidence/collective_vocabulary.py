"""The vocabulary about collectives: the properties of operations, and the stack frames that belong to a collective."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import re2

from torchtriage.domain.vocabulary import Vocabulary

_FRAMES, _OPERATIONS, _GRADIENTS = "collective-frames", "collective-operations", "gradient-frames"
_HELPERS = "helper-process-frames"
_MAX_KEPT = 1000  # names of operations
_NEEDS_ALL, _EVEN = "needs-all", "even"


@dataclass(frozen=True)
class CollectiveVocabulary:
    """Compiled at the first use, because few runs have evidence next to their logs."""

    vocabulary: Vocabulary

    def waits_in_collective(self, frame: str) -> bool:
        """Returns whether a stack with this frame, `file:function`, waits in a collective."""
        return bool(self._frames.search(frame))

    def may_wait_for_ranks(self, frame: str) -> bool:
        """Returns whether a stack with this frame may wait for other ranks, although the frame does not name a
        collective."""
        return bool(self._gradients.search(frame))

    def is_helper_process(self, frame: str) -> bool:
        """Returns whether a process with this frame is not a rank, but was started by a rank or starts ranks."""
        return bool(self._helpers.search(frame))

    def needs_all_ranks(self, operation: str) -> bool:
        """Returns whether the operation ends on no rank before all ranks have joined it."""
        return bool(self._operations[_NEEDS_ALL].search(operation))

    def needs_equal_sizes(self, operation: str) -> bool:
        """Returns whether the operation needs the same sizes on every rank."""
        known = self._equal_size_operations.get(operation)
        if known is None:
            known = bool(self._operations[_EVEN].search(operation))
            if len(self._equal_size_operations) < _MAX_KEPT:
                self._equal_size_operations[operation] = known
        return known

    @cached_property
    def _equal_size_operations(self) -> dict[str, bool]:
        """Cached by operation, because it is needed for each call of each rank and there are few operations."""
        return {}

    @cached_property
    def _frames(self) -> Any:
        return re2.compile(self.vocabulary.regex(_FRAMES))

    @cached_property
    def _gradients(self) -> Any:
        return re2.compile(self.vocabulary.regex(_GRADIENTS))

    @cached_property
    def _helpers(self) -> Any:
        return re2.compile(self.vocabulary.regex(_HELPERS))

    @cached_property
    def _operations(self) -> dict[str, Any]:
        patterns = self.vocabulary.patterns(_OPERATIONS)
        return {pattern.name: re2.compile(pattern.exact) for pattern in patterns if pattern.name}
