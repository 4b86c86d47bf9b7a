"""Counts that are kept, and views of lists that people saved."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger
from sqlalchemy.orm import Mapped, mapped_column

from app.storage.tables.base import Base, Number


class DailyCountRow(Base):
    """How many incidents of a day (UTC), cluster, outcome and entry there are, and the GPU hours that they lost.

    An empty text stands for no cluster, or no entry. Only incidents with a verdict are counted.
    """

    __tablename__ = "daily_counts"

    day: Mapped[str] = mapped_column(primary_key=True)
    cluster: Mapped[str] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(primary_key=True)
    entry: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    gpu_hours: Mapped[float]


class ViewRow(Base):
    """Filters of the list of incidents under a name, for everyone; `query` is as in the page's address."""

    __tablename__ = "views"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    query: Mapped[str]
    by: Mapped[str]
    at: Mapped[datetime]
