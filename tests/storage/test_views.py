from __future__ import annotations

import pytest

from app.errors import NotFound
from app.storage import views
from app.storage.database import Database
from tests.storage import values


def test_a_view_is_kept_replaced_and_removed(database: Database) -> None:
    with database.transaction() as session:
        first = views.put(session, "my cluster", "cluster=blue", "ann", values.START)
        again = views.put(session, "my cluster", "cluster=green", "bob", values.START)
        views.put(session, "all", "", "ann", values.START)
        assert (again.id, again.query, again.by) == (first.id, "cluster=green", "bob")
        assert [view.name for view in views.listed(session)] == ["all", "my cluster"]
        assert views.remove(session, first.id).query == "cluster=green"
        assert [view.name for view in views.listed(session)] == ["all"]
        for gone in (first.id, "x"):
            with pytest.raises(NotFound):
                views.remove(session, gone)
