"""Configures the service's own log messages: one line per message, to standard error, as text or as JSON.

Values bound to the context, such as the request's id, are in every message that is written in that context.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from torchtriage.lazy_regex import lazy_regex

_CONTROLS = lazy_regex("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ITS_OWN = ("timestamp", "level", "logger")  # the service sets these: they contain no text from a caller
_COLOURED = "color_message"  # uvicorn repeats the message in this key
_QUIET = "alembic"  # our own messages already report what it logs


def configure(level: str = "info", form: str = "text", clean: Callable[[str], str] = str) -> None:
    """Sends all messages from `level` upward to standard error. `form` is text or json. `clean` removes secrets from a
    text."""

    def cleaned(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {
            name: clean(value) if isinstance(value, str) and name not in _ITS_OWN else value
            for name, value in event.items()
            if name != _COLOURED
        }

    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render = structlog.processors.JSONRenderer(ensure_ascii=False) if form == "json" else _text
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            cleaned,
            render,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger(_QUIET).setLevel(logging.WARNING)


def _text(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Returns one line for people. Text from a caller cannot start a new line. A traceback follows on its own lines."""
    trace = event.pop("exception", None)
    parts = [event.pop("timestamp"), event.pop("level").upper(), f"{event.pop('logger')}:", event.pop("event")]
    line = " ".join([*map(str, parts), *(f"{name}={value}" for name, value in event.items())])
    line = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", line)
    return f"{line}\n{trace}" if trace else line
