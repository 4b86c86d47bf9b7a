"""Collects all lists of rules that find a root cause, in the order in which the engine applies them."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torchtriage.causality import clean_up, ending, fallbacks, rank_attribution, root_cause, survived, tool_reports


@dataclass(frozen=True, slots=True)
class RuleList:
    """A list of rules: what it decides, and the module and name under which it is defined."""

    decides: str
    module: ModuleType
    name: str

    @property
    def rules(self) -> tuple[Any, ...]:
        rules: tuple[Any, ...] = getattr(self.module, self.name)
        return rules


RULE_LISTS = (
    RuleList("Further searches if nothing says why the run failed", fallbacks, "FALLBACKS"),
    RuleList("Failures caused by the launcher's clean-up", clean_up, "CLEAN_UP"),
    RuleList("Failures that the run survived", survived, "SURVIVAL"),
    RuleList("Failures that do not count, although no training step follows them", survived, "DISCOUNTED"),
    RuleList("Failures that were only logged", root_cause, "LOGGED_ONLY"),
    RuleList("Whether the run failed", root_cause, "FAILED"),
    RuleList("How a run without failures ended", ending, "ENDINGS"),
    RuleList("Failures that came before the strongest one", root_cause, "EARLIER_FAILURES"),
    RuleList("Failures that were printed after the strongest one but happened before it", root_cause, "LATE_OUTPUT"),
    RuleList("Errors printed by the rank that the others waited for", root_cause, "BY_MISSING_RANK"),
    RuleList("Tool reports that are not about this failure", tool_reports, "IGNORED_REPORTS"),
    RuleList("When a tool report is preferred over the log", tool_reports, "PREFERRED_REPORTS"),
    RuleList("Which rank failed, if ranks timed out waiting", rank_attribution, "TIMEOUT_RANK_RULES"),
    RuleList("Which rank failed, if the failure names none", rank_attribution, "RANKS"),
)
