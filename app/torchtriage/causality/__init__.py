"""From lines to a root cause: findings of a run, what follows from what, which rank failed first."""
