"""Counts that are kept, and views of lists that people saved."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Integer
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class CountRow(Base):
    """How many incidents of a day or month, cluster, outcome and entry there are, and what they cost.

    Only incidents with a verdict are counted. `period` is 20260501 or 202605, in UTC; an empty text stands for no
    cluster, or no entry. Rows with `every` are of all clusters together, and name none. `cost` is in ten-thousandths of
    a GPU hour: whole numbers stay exact, whatever is added and taken away.
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
    """How many runs of a cluster failed first on a host in a day or month, for how many of them the host itself was to
    blame, and what they cost. `period`, `cluster` and `cost` are as in CountRow."""

    __tablename__ = "host_counts"
    __table_args__ = ({"sqlite_with_rowid": False},)

    period: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(primary_key=True)
    cluster: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    hardware: Mapped[int] = mapped_column(BigInteger)
    cost: Mapped[int] = mapped_column(BigInteger)


class ViewRow(Base):
    """Filters of the list of incidents under a name, for everyone; `query` is as in the page's address."""

    __tablename__ = "views"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    query: Mapped[str]
    by: Mapped[str]
    at: Mapped[datetime]
