"""The table of the latest retriage."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base


class RetriageRow(Base):
    """At most one row. `run` identifies its process, so that one that counted as dead does not overwrite a
    newer one."""

    __tablename__ = "retriage"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    run: Mapped[str]
    stage: Mapped[str]
    seen_at: Mapped[datetime]  # the last write by its process
    progress: Mapped[dict[str, Any]] = mapped_column("told")  # the name of the column since the first version
