"""The tables of maintained counts and of saved views."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Integer
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class CountRow(Base):
    """The number of incidents of a day or month, cluster, outcome and entry, and their cost.

    Counts only incidents with a verdict. `period` is 20260501 or 202605, in UTC. An empty text means no cluster or no
    entry. Rows with `every` count all clusters together. `cost` is in units of 0.0001 GPU hours: an integer stays exact
    when values are added and subtracted.
    """

    __tablename__ = "counts"
    __table_args__ = ({"sqlite_with_rowid": False},)

    period: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    every: Mapped[bool] = mapped_column(primary_key=True)
    cluster: Mapped[str] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(primary_key=True)
    entry: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    cost: Mapped[int] = mapped_column(BigInteger)


class HostCountRow(Base):
    """The number of runs of a cluster that failed first on a host in a day or month, how many of them failed because of
    the host's hardware, and their cost. `period`, `cluster` and `cost` are as in CountRow."""

    __tablename__ = "host_counts"
    __table_args__ = ({"sqlite_with_rowid": False},)

    period: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(primary_key=True)
    cluster: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    hardware: Mapped[int] = mapped_column(BigInteger)
    cost: Mapped[int] = mapped_column(BigInteger)


class ViewRow(Base):
    """A named filter of the incident list, for everyone. `query` is the query string of the page's URL."""

    __tablename__ = "views"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    query: Mapped[str]
    by: Mapped[str]
    at: Mapped[datetime]
