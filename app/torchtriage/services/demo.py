"""Fills an empty service with one month of demonstration incidents. The engine triages each, like any other log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from torchtriage.domain.entry import KnowledgeBase
from torchtriage.domain.group import GroupChange, GroupFilter, GroupStatus
from torchtriage.domain.incident import Feedback, IncidentFilter, Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import groups, incidents
from torchtriage.services.accept import accept
from torchtriage.services.decisions import decide_about
from torchtriage.services.demo_logs import LOCAL, Launch, ends_at_start, fits, log_of
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
_NOTES = {  # by owner, who must act
    "user": ("a smaller batch helped", "fixed in the loader", "the config was wrong"),
    "hardware": ("the node was drained and repaired", "the card was swapped"),
}
_NOTED = ("restarted, gone since", "updated the driver")
_UNKNOWN = 0.08  # share of failures that no entry explains
_HEALTHY = 0.08
_RETRIED = 0.35
_SAME = 0.7  # share of retries that fail in the same way, if a retry can help
_WELL_AGAIN = 0.5  # share of the other retries that succeed
_LUCKY = 0.06  # share that succeeds if a retry cannot help
_QUEUES = ("batch", "batch", "long", "debug")
_IMAGES = tuple(f"registry.example.com/ml/train:torch{version}" for version in ("2.3.1", "2.5.1", "2.6.0", "2.7.1"))
_BAD_IMAGE = "registry.example.com/ml/train:nightly-torch2.7.1"
_BAD_CLUSTER = "cumulus"
_BAD_SHARE = 2  # hardware failures are this many times as frequent in the bad cluster
_ON_BAD_HOST = 0.8  # share of hardware failures that hit a bad host
_TEAMS = dict(
    zip(_JOBS, ("llm", "llm", "post-training", "post-training", "vision", "llm", "eval", "speech"), strict=True)
)


@dataclass(frozen=True, slots=True)
class _Failure:
    """One log to upload, of one attempt of a job."""

    log: str
    job: Job
    at: datetime


def fill(service: Service, count: int, seed: int, now: datetime, on_progress: Callable[[int], None]) -> None:
    """Adds `count` incidents of the DAYS before `now`, and people's decisions about some groups.

    Calls `on_progress` with the number of incidents done so far. The same seed makes the same incidents. Raises
    StorageUnavailable.
    """
    chance = Random(seed)
    failures = sorted(_failures(service.knowledge, count, chance, now), key=lambda failure: failure.at)
    done = 0
    with ThreadPoolExecutor(max(1, service.settings.workers)) as pool:
        for _ in pool.map(lambda failure: _submit(service, failure), failures):
            done += 1
            on_progress(done)
    _decide(service, chance, now)


def _submit(service: Service, failure: _Failure) -> None:
    upload = Upload("run.log", iter([failure.log.encode()]))
    accepted = accept(service, failure.job, [upload], failure.at)
    triage_incident(service, accepted.incident_id)
    if failure.job.exit_code:
        decide_about(service, accepted.incident_id, "demo", now=failure.at)


def _failures(knowledge: KnowledgeBase, count: int, chance: Random, now: datetime) -> Iterator[_Failure]:
    by_share = knowledge.vocabulary.groups("demo-failures")
    messages = knowledge.vocabulary.groups("demo-messages")
    of_bad_image = knowledge.vocabulary.words("demo-bad-image")
    made = 0
    while made < count:
        cluster, scheduler, size = chance.choice(_CLUSTERS)
        known = {
            name: (
                int(share) * (_BAD_SHARE if cluster == _BAD_CLUSTER and _is_hardware(knowledge, name) else 1),
                fitting,
            )
            for share, names in by_share.items()
            for name in names
            if (fitting := [message for message in messages[name] if fits(message, scheduler)])
        }
        name, user, attempt = chance.choice(_JOBS), chance.choice(_PEOPLE), 0
        at = now - timedelta(days=DAYS) * chance.betavariate(1.1, 1.4)
        number, image = str(chance.randrange(10**5, 10**6)), chance.choice(_IMAGES)
        job = Job(job_id=number, job_name=name, user=user, cluster=cluster, scheduler=scheduler,
                  queue=chance.choice(_QUEUES), image=image, labels={"team": _TEAMS[name]})  # fmt: skip
        entry, last, most = "", None, None
        while made < count:
            helps = not entry or knowledge.entries[entry].action.retry != "no"
            if not entry or (helps and chance.random() > _SAME):
                entry = chance.choices(list(known), [share for share, _ in known.values()])[0]
            healthy = chance.random() < ((_WELL_AGAIN if helps else _LUCKY) if attempt else _HEALTHY)
            message = None if healthy else chance.choice(known[entry][1])
            if message and last and not helps:
                message = last  # it fails in the same way, and not at a later step
            elif message and chance.random() < _UNKNOWN:
                message = chance.choice(messages["unknown"])
            if message and entry in of_bad_image and chance.random() < 0.8:
                job = replace(job, image=_BAD_IMAGE)
            owner = knowledge.entries[entry].owner
            launch = _launch(chance, cluster, scheduler, size, owner, at, message, job, None if helps else most)
            last, most = message, launch.steps
            yield _failure(launch, owner, message, chance, replace(job, attempt=attempt))
            made += 1
            attempt += 1
            at += timedelta(hours=chance.uniform(0.3, 9))
            if healthy or chance.random() > _RETRIED or at > now:
                break


def _is_hardware(knowledge: KnowledgeBase, entry: str) -> bool:
    return knowledge.entries[entry].owner == "hardware"


def _launch(
    chance: Random,
    cluster: str,
    scheduler: str,
    size: int,
    owner: str,
    at: datetime,
    message: str | None,
    job: Job,
    most: int | None,
) -> Launch:
    """`most` is the maximum number of steps, if known."""
    wide = chance.choices((1, 2, 4, 8, 16, 64), (30, 24, 20, 14, 9, 3))[0]
    # Hardware failures repeat on a few hosts, one of which the scheduler keeps giving to jobs. So the pages can show
    # hosts that fail more often than chance explains.
    bad = [f"{cluster}-{number:03}" for number in (7, 19, 31)]
    hosts = chance.sample([f"{cluster}-{number:03}" for number in range(1, size + 1)], min(wide, size))
    if owner == "hardware" and chance.random() < _ON_BAD_HOST:
        hosts = [
            chance.choices(bad, (10, 2, 1) if cluster == _BAD_CLUSTER else (2, 2, 1))[0],
            *[host for host in hosts if host not in bad],
        ][:wide]
    steps = 0 if message and ends_at_start(message) else 1 + int(chance.expovariate(1 / 900))
    if message and most is not None:
        steps = min(steps, most)
    began = at - timedelta(minutes=13) - steps * timedelta(seconds=7)
    torch = (job.image or "").rpartition("torch")[2] or "2.6.0"
    return Launch("train.py", tuple(hosts), began, steps, scheduler == "slurm", torch, job.job_id or "4711")


def _failure(launch: Launch, owner: str, message: str | None, chance: Random, job: Job) -> _Failure:
    rank = chance.randrange(launch.world)
    if owner == "hardware":
        rank %= LOCAL
    log = log_of(launch, message, rank, chance)
    ended = launch.failed + timedelta(minutes=11)
    values = {
        "started_at": _iso(launch.began),
        "ended_at": _iso(ended),
        "gpus": launch.world,
        "exit_code": int(message is not None),
    }
    return _Failure(log, Job(**(job.to_json() | values)), ended)


def _decide(service: Service, chance: Random, now: datetime) -> None:
    """Makes the changes of a month: statuses, owners and notes of groups, and feedback about verdicts."""
    found = groups.list_groups(service, GroupFilter(), 50).items
    for group in found[::3]:
        status = chance.choice((GroupStatus.RESOLVED, GroupStatus.IGNORED, GroupStatus.OPEN))
        change = GroupChange(status, chance.choice(_PEOPLE), chance.choice(_notes(service, group.entry)))
        groups.change_group(service, group.id, change, "demo")
    feedback: list[tuple[str, Feedback]] = []
    for incident in incidents.list_incidents(service, IncidentFilter(), 60).items[::2]:
        right = chance.random() < 0.9 and incident.verdict is not None and incident.verdict.outcome != "unexplained"
        note = chance.choice((*_notes(service, incident.entry), None)) if right and incident.entry else None
        at = incident.received_at + (now - incident.received_at) * chance.uniform(0.1, 0.9)
        feedback.append((incident.id, Feedback("right" if right else "wrong", chance.choice(_PEOPLE), at, None, note)))
    # Sorted by time, as the audit log is.
    for number, said in sorted(feedback, key=lambda one: one[1].at):
        incidents.give_feedback(service, number, said)


def _notes(service: Service, entry: str | None) -> tuple[str, ...]:
    found = service.knowledge.entries.get(entry or "")
    return _NOTES.get(found.owner, _NOTED) if found else _NOTED


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
