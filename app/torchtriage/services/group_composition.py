"""Who and where a group affects, compared with all runs, and what happened after its failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from torchtriage.domain.group_composition import MIN_SEEN, Composition, LaterAttempt, Share
from torchtriage.domain.incident import Feedback
from torchtriage.services.probability import chance_probability
from torchtriage.services.service import Service
from torchtriage.storage import feedback, group_composition
from torchtriage.storage.group_composition import Run

PROPERTIES = ("host", "user", "job_name", "cluster", "queue", "image", "commit", "torch", "cuda", "nccl", "python")
_RUNS = 1000  # maximum runs of the group, and of other runs
_LOGS = 60  # maximum runs of each kind whose versions are read, because those are in the stored verdicts
_SHOWN = 6  # maximum values of a property
_ATTEMPTS = 200


def composition(service: Service, group: str) -> Composition:
    """Returns the shares among the group's latest runs; for versions, among its latest _LOGS."""
    with service.database.reading() as session:
        inside, outside = group_composition.runs(session, group, _RUNS)
        looked_at = [run.number for runs in (inside, outside) for run in runs[:_LOGS]]
        versions = group_composition.versions(session, looked_at)
    inside, outside = ([Run(run.number, run.known | versions.get(run.number, {})) for run in runs]
                      for runs in (inside, outside))  # fmt: skip
    parts, more, values = {}, {}, {}
    for name in PROPERTIES:
        counts = _counts(inside, name)
        values[name] = tuple(sorted(counts))
        shares = _shares(counts, _counts(outside, name))
        if shares:
            parts[name], more[name] = tuple(shares[:_SHOWN]), max(0, len(shares) - _SHOWN)
    return Composition(len(inside), len(inside) + len(outside), parts, more, values)


def later_attempts(service: Service, group: str) -> list[LaterAttempt]:
    """Returns what followed the group's latest incidents that have a job id, newest first."""
    with service.database.reading() as session:
        return group_composition.later_attempts(session, group, _ATTEMPTS)


def said_of_group(service: Service, group: str) -> list[tuple[str, Feedback]]:
    """Returns the feedback about the group's latest incidents, each with the incident's id, newest first."""
    with service.database.reading() as session:
        return feedback.of_group(session, group)


def _counts(runs: Iterable[Run], name: str) -> Counter[str]:
    return Counter(run.known[name] for run in runs if name in run.known)


def _shares(inside: Counter[str], outside: Counter[str]) -> list[Share]:
    """Returns the shares of the group's values. Empty if all runs have the same value, because that shows nothing."""
    if len(inside | outside) < 2:
        return []
    known, all_known = inside.total(), inside.total() + outside.total()
    shares = []
    for value, seen in inside.items():
        everywhere = seen + outside[value]
        # Rarer than elsewhere, or too few runs to judge.
        rarer = seen < MIN_SEEN or seen * all_known <= everywhere * known
        chance = 1.0 if rarer else chance_probability(seen, known, everywhere, all_known) * len(inside)
        shares.append(Share(value, seen, known, everywhere, all_known, min(1.0, chance)))
    return sorted(shares, key=lambda share: (not share.stands_out, -share.inside, share.chance, share.value))
