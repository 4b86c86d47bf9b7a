"""In what the program ran: the frameworks in its frames, the Python that ran it and where that is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.event import Frame
from torchtriage.domain.fact import Fact
from torchtriage.lazy_regex import lazy_regex

FRAMEWORKS = "frameworks"  # the list of the vocabulary
_PREFIX = lazy_regex(r"^(.{0,300}?)[/\\](?:lib|Lib|lib64)[/\\](?:python3[\d.]*[/\\]|site-packages)")
_VERSION = lazy_regex(r"[/\\]python(3\.\d{1,2})(?:\.\d+)?[/\\]|[/\\]Python(3)(\d{1,2})[/\\]")


def python_environment(failure: Failure) -> Iterator[Fact]:
    """`frameworks` (those whose files are in the traceback, as `DDP, Trainer`), `environment` (the prefix of the
    Python environment: `/home/x/miniconda3/envs/y`) and `python_version` (3.11), both out of a library's path."""
    told = " ".join(f"{frame.file} {frame.code}" for frame in _frames(failure)).replace("\\", "/")
    known = failure.reading.matcher.patterns.vocabulary.patterns(FRAMEWORKS)
    if names := [item.name for item in known if item.name and re.search(item.exact, told)]:
        yield failure.fact("frameworks", ", ".join(names))
    paths = [frame.file for frame in reversed(_frames(failure)) if not failure.is_users(frame)]
    paths += re.findall(r"[/\\][^\s'\"():]{1,300}?site-packages", failure.raised.message if failure.raised else "")
    environment = next((at[1] for path in paths if (at := _PREFIX.match(path)) and at[1]), None)
    if environment is not None:
        yield failure.fact("environment", environment)
    version = next((at[1] or f"{at[2]}.{at[3]}" for path in paths if (at := _VERSION.search(path))), None)
    if version is not None:
        yield failure.fact("python_version", version)


def _frames(failure: Failure) -> list[Frame]:
    return [frame for raised in failure.finding.event.chain for frame in raised.frames]
