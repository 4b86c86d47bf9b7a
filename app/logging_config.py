"""How the service speaks about itself: one line a message, to standard error."""

from __future__ import annotations

import logging
import sys

_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure(level: str = "info") -> None:
    """Sends all messages from `level` on to standard error."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format=_FORM, force=True)
    # Each is told by our own messages already, or by the access log.
    logging.getLogger("alembic").setLevel(logging.WARNING)
