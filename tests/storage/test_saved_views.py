from __future__ import annotations

import pytest

from tests.storage import values
from torchtriage.errors import NotFound
from torchtriage.storage import saved_views
from torchtriage.storage.database import Database


def test_a_view_is_stored_replaced_and_removed(database: Database) -> None:
    with database.transaction() as session:
        first = saved_views.put(session, "my cluster", "cluster=blue", "ann", values.START)
        again = saved_views.put(session, "my cluster", "cluster=green", "bob", values.START)
        saved_views.put(session, "all", "", "ann", values.START)
        assert (again.id, again.query, again.by) == (first.id, "cluster=green", "bob")
        assert [view.name for view in saved_views.listed(session)] == ["all", "my cluster"]
        assert saved_views.remove(session, first.id).query == "cluster=green"
        assert [view.name for view in saved_views.listed(session)] == ["all"]
        for gone in (first.id, "x"):
            with pytest.raises(NotFound):
                saved_views.remove(session, gone)
