"""A demonstration: an empty service in, one with incidents of a month out, each triaged by the engine as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Feedback, IncidentFilter, Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import groups, incidents
from torchtriage.services.accept import accept
from torchtriage.services.demo_logs import LOCAL, Launch, log_of
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import triage_incident

DAYS = 30
_CLUSTERS = (
    ("aurora", "slurm", 64),
    ("borealis", "slurm", 40),
    ("cumulus", "kubernetes", 48),
)  # name, scheduler, hosts
_PEOPLE = ("ann", "bo", "chen", "dara", "eli", "fatima", "goran", "hana", "ines", "jun", "kofi", "li")
_JOBS = (
    "pretrain-7b",
    "pretrain-70b",
    "sft-chat",
    "dpo-chat",
    "vision-clip",
    "moe-ablation",
    "eval-suite",
    "asr-large",
)
_NOTES = {  # by who has to act
    "user": ("a smaller batch helped", "fixed in the loader", "the config was wrong"),
    "hardware": ("the node was drained and repaired", "the card was swapped"),
}
_NOTED = ("restarted, gone since", "updated the driver")
_UNKNOWN = 0.08  # share of failures that no entry names
_HEALTHY = 0.03
_RETRIED = 0.35


@dataclass(frozen=True, slots=True)
class _Failure:
    """One log to hand in, of a job's `attempt`."""

    log: str
    job: Job
    at: datetime


def fill(service: Service, count: int, seed: int, now: datetime, told: Callable[[int], None]) -> None:
    """Adds `count` incidents of the last DAYS before `now`, and what people decided about some groups.

    `told` is called with how many are done. The same seed makes the same incidents. Raises StorageUnavailable.
    """
    chance = Random(seed)
    failures = sorted(_failures(service.knowledge, count, chance, now), key=lambda failure: failure.at)
    done = 0
    with ThreadPoolExecutor(max(1, service.settings.workers)) as pool:
        for _ in pool.map(lambda failure: _hand_in(service, failure), failures):
            done += 1
            told(done)
    _decide(service, chance, now)


def _hand_in(service: Service, failure: _Failure) -> None:
    upload = Upload("run.log", iter([failure.log.encode()]))
    accepted = accept(service, failure.job, [upload], failure.at)
    triage_incident(service, accepted.incident_id)


def _failures(knowledge: KnowledgeBase, count: int, chance: Random, now: datetime) -> Iterator[_Failure]:
    by_share = knowledge.vocabulary.groups("demo-failures")
    known = [knowledge.entries[name] for names in by_share.values() for name in names]
    shares = [int(share) for share, names in by_share.items() for _ in names]
    made = 0
    while made < count:
        cluster, scheduler, size = chance.choice(_CLUSTERS)
        name, user, attempt = chance.choice(_JOBS), chance.choice(_PEOPLE), 0
        at = now - timedelta(days=DAYS) * chance.betavariate(1.1, 1.4)
        number = str(chance.randrange(10**5, 10**6))
        job = Job(job_id=number, job_name=name, user=user, cluster=cluster, scheduler=scheduler, queue="batch")
        while made < count:
            entry = chance.choices(known, shares)[0]
            launch = _launch(chance, cluster, scheduler, size, entry, at)
            yield _failure(launch, entry, chance, replace(job, attempt=attempt))
            made += 1
            attempt += 1
            at += timedelta(hours=chance.uniform(0.3, 9))
            if chance.random() > _RETRIED or at > now:
                break


def _launch(chance: Random, cluster: str, scheduler: str, size: int, entry: Entry, at: datetime) -> Launch:
    wide = chance.choices((1, 2, 4, 8, 16, 64), (30, 24, 20, 14, 9, 3))[0]
    # Hardware fails again and again on a few hosts.
    bad = [f"{cluster}-{number:03}" for number in (7, 19, 31)]
    hosts = chance.sample([f"{cluster}-{number:03}" for number in range(1, size + 1)], min(wide, size))
    if entry.owner == "hardware" and chance.random() < 0.7:
        hosts = [chance.choice(bad), *[host for host in hosts if host not in bad]][:wide]
    torch = chance.choice(("2.3.1", "2.5.1", "2.6.0", "2.7.1"))
    steps = int(chance.expovariate(1 / 900))
    began = at - timedelta(minutes=13) - steps * timedelta(seconds=7)
    return Launch("train.py", tuple(hosts), began, steps, scheduler == "slurm", torch)


def _failure(launch: Launch, entry: Entry, chance: Random, job: Job) -> _Failure:
    healthy, rank = chance.random() < _HEALTHY, chance.randrange(launch.world)
    if entry.owner == "hardware":
        rank %= LOCAL
    log = log_of(launch, None if healthy else entry, rank, chance)
    if not healthy and chance.random() < _UNKNOWN:
        log = log_of(launch, _unknown(entry, chance), rank, chance)
    ended = launch.failed + timedelta(minutes=11)
    told = {
        "started_at": _iso(launch.began),
        "ended_at": _iso(ended),
        "gpus": launch.world,
        "exit_code": int(not healthy),
    }
    return _Failure(log, Job(**(job.to_json() | told)), ended)


def _unknown(entry: Entry, chance: Random) -> Entry:
    """-> an entry whose message no entry knows."""
    number = chance.randrange(5)
    what = ("BatchLayoutError: shard 17 has no column 'mask'", "ScheduleError: no phase follows 'cooldown'",
            "RouterImbalanceError: expert 12 got 0 tokens for 500 steps", "LedgerError: step 4100 is recorded twice",
            "CropError: box (0, 0, -4, 12) is empty")[number]  # fmt: skip
    return replace(entry, owner="user", match_examples=(f"project.errors.{what}",))


def _decide(service: Service, chance: Random, now: datetime) -> None:
    """What people do in a month: they resolve, ignore, own and note groups, and say whether verdicts were right."""
    found = groups.list_groups(service, GroupFilter(), 50).items
    for group in found[::3]:
        status = chance.choice((GroupStatus.RESOLVED, GroupStatus.IGNORED, GroupStatus.OPEN))
        change = GroupChange(status, chance.choice(_PEOPLE), chance.choice(_notes(service, group.entry)))
        groups.change_group(service, group.id, change, "demo")
    for incident in incidents.list_incidents(service, IncidentFilter(), 60).items[::2]:
        note = chance.choice((*_notes(service, incident.entry), None))
        said = Feedback("right" if chance.random() < 0.9 else "wrong", chance.choice(_PEOPLE), now, None, note)
        incidents.give_feedback(service, incident.id, said)


def _notes(service: Service, entry: str | None) -> tuple[str, ...]:
    found = service.knowledge.entries.get(entry or "")
    return _NOTES.get(found.owner, _NOTED) if found else _NOTED


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
