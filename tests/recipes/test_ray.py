"""deploy/ray: how often a trainer is fitted. RAY_PYTHON=…/bin/python runs it with the real Ray."""

from __future__ import annotations

from tests.client.running import NOBODY
from tests.recipes.conftest import FakeService, Recipe


def test_a_run_is_fitted_again_where_that_is_decided(ray: Recipe, service: FakeService) -> None:
    service.decisions = [{"action": "restart-excluding", "hosts": ["gpu-021"]}, {"action": "restart"}]
    told = ray.run("ray_run.py", "2")
    assert (told["raised"], told["made"]) == (None, [[], ["gpu-021"], ["gpu-021"]])
    assert [one["attempt"] for one in service.reports] == ["0", "1"]
    assert {(one["job_name"], one["scheduler"]) for one in service.reports} == {("bert", "ray")}
    for log in service.logs:
        # Ray tells of the workers that have failed by the time it looks: one at least.
        failed = [rank for rank in (0, 1) if f"[rank{rank}]: " in log]
        assert failed
        for rank in failed:
            assert f"[rank{rank}]: Traceback (most recent call last):\n" in log
            assert f"[rank{rank}]: RuntimeError: CUDA out of memory." in log
    (job,) = {one["job_id"] for one in service.reports}
    assert service.good_ends == [{"job_name": "bert", "job_id": job}]


def test_a_stop_raises_as_ray_does(ray: Recipe, service: FakeService) -> None:
    service.decisions = [{"action": "stop"}]
    told = ray.run("ray_run.py", "9")
    assert (told["raised"], told["made"]) == ("WorkerGroupError", [[]])
    assert not service.good_ends


def test_a_dry_run_raises_too(ray: Recipe, service: FakeService) -> None:
    service.decisions = [{"action": "restart", "mode": "dry-run"}]
    told = ray.run("ray_run.py", "1")
    assert (told["raised"], told["made"]) == ("WorkerGroupError", [[]])
    assert "restart (dry run). Because." in told["output"]


def test_without_a_service_it_raises(ray: Recipe) -> None:
    told = ray.run("ray_run.py", "1", url=NOBODY)
    assert (told["raised"], told["made"]) == ("WorkerGroupError", [[]])
    assert "can't be reached" in told["output"]
