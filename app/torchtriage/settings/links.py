"""Links from an incident to pages about its run in other systems, from a TOML file of templates.

timezone = "Europe/Berlin"              # for times in logs that name no zone (UTC)

[[links]]
name = "Logs in Loki"
grafana = "https://grafana.example.org"
type = "loki"
datasource = "P8E80F9AEF21F6940"
query = '{host="$host"}'

[[links]]
name = "Job page"
url = "https://slurm.example.org/jobs/$job_id?from=$from_ms&to=$to_ms"
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from torchtriage.errors import SettingError
from torchtriage.settings import value_parsers
from torchtriage.settings.options import PREFIX

_TYPES = ("loki", "prometheus")
_EXPLORE = ("grafana", "type", "datasource", "query")
_OF_GRAFANA = "__"  # prefix of Grafana's own variables, such as $__rate_interval, which are not filled in
_PLACES = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True)
class LinkTemplate:
    """One link, to `url` or to a `query` in Grafana Explore. `needs` are the names of the values that it contains."""

    name: str
    name_zh: str
    needs: frozenset[str]
    url: str = ""
    grafana: str = ""
    type: str = ""
    datasource: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class LinkTemplates:
    """All link templates. `timezone` applies to times in logs that name no zone."""

    timezone: str = "UTC"
    links: tuple[LinkTemplate, ...] = ()


def link_templates(file: Path | None) -> LinkTemplates:
    """Returns the templates in a file; without a file, none. Raises SettingError, one line that says what is wrong."""
    if file is None:
        return LinkTemplates()
    try:
        content = tomllib.loads(file.read_text("utf-8"))
        value_parsers.only_known_keys("the file", content, ("timezone", "links"))
        zone, links = content.get("timezone", "UTC"), content.get("links", [])
        _zone(zone)
        if not isinstance(links, list):
            raise ValueError("links: write each one as [[links]]")
        return LinkTemplates(zone, tuple(_link(number, given) for number, given in enumerate(links, 1)))
    except OSError as error:
        problem = f"{file} can't be read: {error.strerror}"
    except ValueError as error:
        problem = str(error)
    raise SettingError(f"{PREFIX}LINKS_FILE: {problem}", setting=f"{PREFIX}LINKS_FILE")


def fill(template: str, values: dict[str, str]) -> str:
    """Returns the template with the values filled in. Variables of Grafana itself are kept."""
    return _PLACES.sub(lambda found: values.get(found[1] or found[2], found[0]), template)


def _link(number: int, given: Any) -> LinkTemplate:
    where = f"link {number}"
    if not isinstance(given, dict) or not given.get("name"):
        raise ValueError(f"{where}: name is missing")
    value_parsers.only_known_keys(where, given, ("name", "name_zh", "url", *_EXPLORE))
    if not all(isinstance(value, str) for value in given.values()):
        raise ValueError(f"{where}: all values must be strings")
    if bool(given.get("url")) == any(given.get(name) for name in _EXPLORE):
        raise ValueError(f"{where}: give url, or {', '.join(_EXPLORE)}")
    if not given.get("url"):
        for name in _EXPLORE:
            if not given.get(name):
                raise ValueError(f"{where}: {name} is missing")
        if given["type"] not in _TYPES:
            raise ValueError(f"{where}: type must be one of {', '.join(_TYPES)}")
    if not (given.get("url") or given["grafana"]).startswith(("https://", "http://")):
        raise ValueError(f"{where}: the URL does not start with https://")
    places = _PLACES.findall(given.get("url", "") + given.get("query", ""))
    needs = frozenset(name for pair in places for name in pair if name and not name.startswith(_OF_GRAFANA))
    return LinkTemplate(**{"name_zh": given["name"], **given}, needs=needs)


def _zone(name: Any) -> None:
    try:
        ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"timezone: {name} is not a name such as Europe/Berlin") from None
