"""What Kubernetes reports about an attempt's pods, as lines with a time, in a form that the knowledge base has entries
for."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from torchtriage.watcher.attempt import Attempt
from torchtriage.watcher.pod import Ending, Json, Pod, seconds

# Events of type Normal that are kept.
_TELLING = {"Killing", "Preempted", "Preempting", "TaintManagerEviction", "SuccessfulDelete"}
_CRASHES = (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV)
_MAX_COUNT = 50  # maximum number of events per pod
_MAX_LENGTH = 4096  # maximum characters of a message, the limit of a termination message


def pod_lines(attempt: Attempt, pod: Pod, events: list[Json]) -> str:
    """Returns the lines about one pod; empty if nothing went wrong with it."""
    lines = [(ending.time, _line_of(ending, attempt)) for ending in attempt.endings.values() if ending.pod == pod.uid]
    lines += [(_time_of(event), _event_line(event)) for event in _relevant(pod, events)]
    for key, reason in attempt.missing.items():
        if key.startswith(pod.uid + "/"):
            lines.append((attempt.first.time, f"container {key.split('/')[1]}: no log, {reason}"))
    if not lines:
        return ""
    place = f"pod {pod.namespace}/{pod.name} on node {pod.node or 'none'}"
    messages = [(pod.created, f"{place}, {attempt.name}"), *sorted(lines, key=lambda line: seconds(line[0]))]
    return "".join(f"{time} {line}\n" for time, line in messages)


def job_lines(attempt: Attempt, events: list[Json]) -> str:
    """Returns the lines about the job itself: which pods failed, its deadline, a quota that refuses its pods."""
    about = [event for event in events if event["involvedObject"].get("kind") != "Pod"]
    about = [each for each in about if each["involvedObject"].get("name") == attempt.job.name]
    since = min((seconds(pod.created) for pod in attempt.pods.values()), default=0.0)
    warnings = [each for each in about if each.get("type") == "Warning" and seconds(_time_of(each)) >= since][
        -_MAX_COUNT:
    ]
    failed = sorted({attempt.pods[ending.pod].name for ending in attempt.endings.values()})
    shown = " ".join(failed[:_MAX_COUNT]) + (" …" if len(failed) > _MAX_COUNT else "")
    first = f"{attempt.first.time} {attempt.name}: {len(failed)} of {len(attempt.pods)} pods failed: {shown}\n"
    return first + "".join(f"{_time_of(event)} {_event_line(event)}\n" for event in warnings)


def _line_of(ending: Ending, attempt: Attempt) -> str:
    message = " ".join(ending.message.split())[:_MAX_LENGTH]
    if not ending.container:
        return f"pod ended: reason: {ending.reason}, message: {message}"
    line = f"container {ending.container} terminated{_signal(ending)}: reason: {ending.reason}"
    if ending.exit_code is not None:
        line += f", exit code: {ending.exit_code}"
    # The message may repeat the program's last output, so it is left out if there is a log.
    if message and (ending.reason not in ("Error", "OOMKilled") or ending.key in attempt.missing):
        line += f", message: {message}"
    return line


def _signal(ending: Ending) -> str:
    """Returns the words for the signal that ended it, if any. Shells and container runtimes add 128 to its number."""
    number = (ending.exit_code or 0) - 128
    return f" with signal {signal.Signals(number).name}" if number in _CRASHES and ending.reason == "Error" else ""


def _relevant(pod: Pod, events: list[Json]) -> Iterator[Json]:
    """Yields the newest events of a pod. If the pod has run, leaves out the events before that."""
    starts = [each for each in pod.containers if each.start is not None]
    since = seconds(pod.status.get("startTime")) if starts else 0.0
    own = [event for event in events if event["involvedObject"].get("uid") == pod.uid]
    relevant = [event for event in own if event.get("type") == "Warning" or event.get("reason") in _TELLING]
    waited = {"FailedScheduling", "FailedMount", "FailedAttachVolume", "BackOff"} if starts else set()
    kept = [each for each in relevant if seconds(_time_of(each)) >= since and each.get("reason") not in waited]
    yield from sorted(kept, key=lambda event: seconds(_time_of(event)))[-_MAX_COUNT:]


def _event_line(event: Json) -> str:
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    message = " ".join(str(event.get("message") or "").split())[:_MAX_LENGTH]
    return f"event {event.get('type')}  {event.get('reason')}  {source}  {message}"


def _time_of(event: Json) -> str:
    """Returns when the event last happened. The field depends on the component that wrote the event."""
    series = event.get("series") or {}
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
    return str(next(filter(None, times), None) or event["metadata"].get("creationTimestamp") or "")
