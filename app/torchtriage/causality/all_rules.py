"""All lists of rules by which a root cause is found, in the order in which they are asked."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torchtriage.causality import cascade, ending, fallbacks, rank_attribution, reports_beside, root_cause, survived


@dataclass(frozen=True, slots=True)
class RuleList:
    """One list: what it decides, and where it stands."""

    decides: str
    module: ModuleType
    name: str

    @property
    def rules(self) -> tuple[Any, ...]:
        rules: tuple[Any, ...] = getattr(self.module, self.name)
        return rules


RULE_LISTS = (
    RuleList("What is tried if nothing says why the run failed", fallbacks, "FALLBACKS"),
    RuleList("What a launcher did itself", cascade, "CLEAN_UP"),
    RuleList("What the run survived", survived, "SURVIVAL"),
    RuleList("What is set aside although no step shows that the run survived it", survived, "OVERCOME"),
    RuleList("What was only logged", root_cause, "LOGGED_ONLY"),
    RuleList("Whether the run failed", root_cause, "FAILED"),
    RuleList("How a run ended in which nothing failed", ending, "ENDINGS"),
    RuleList("What came before the strongest failure", root_cause, "CAME_FIRST"),
    RuleList("What was printed after the strongest failure but happened before it", root_cause, "PRINTED_LATER"),
    RuleList("What the rank that others waited for printed", root_cause, "OF_MISSING_RANK"),
    RuleList("What of a report beside the log is not this failure's", reports_beside, "REPORTS_ASIDE"),
    RuleList("When a report beside the log comes before the log", reports_beside, "REPORTS_FIRST"),
    RuleList("Which rank it was, if ranks timed out waiting", rank_attribution, "WAITED"),
    RuleList("Which rank it was, if the failure names none", rank_attribution, "RANKS"),
)
