"""The retriage that was begun last."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base


class RetriageRow(Base):
    """There is one row at most. `run` is whose it is: a process that was thought dead must not write over another's."""

    __tablename__ = "retriage"

    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    run: Mapped[str]
    stage: Mapped[str]
    seen_at: Mapped[datetime]  # the last sign of life of its worker
    told: Mapped[dict[str, Any]]
