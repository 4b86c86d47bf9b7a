"""`torchtriage watch-kubernetes`: reports the failed training jobs of a cluster. The jobs need no change."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.client.torchtriage_client import settings_of
from torchtriage.errors import SettingError

if TYPE_CHECKING:
    from torchtriage.watcher.options import Options

_USERS = ("torchtriage/user", "user", "username", "owner")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "watch-kubernetes",
        help="report failed training jobs of a Kubernetes cluster",
        description="Watch a Kubernetes cluster and report failed training jobs to a service. Changes no job.",
    )
    where = parser.add_argument_group("target")
    where.add_argument(
        "--url", metavar="URL", help="address of the service ($TORCHTRIAGE_URL); $TORCHTRIAGE_TOKEN holds the token"
    )
    where.add_argument("--cluster", metavar="NAME", help="name of the cluster in reports ($TORCHTRIAGE_CLUSTER)")
    where.add_argument(
        "--folder", type=Path, default=Path("/data"), help="folder for state that must survive a restart (/data)"
    )
    where.add_argument(
        "--port", metavar="N", type=int, default=9090, help="port of /healthz, /readyz and /metrics (9090)"
    )
    which = parser.add_argument_group("jobs")
    which.add_argument(
        "--namespace", metavar="NAME", action="append", help="namespace to watch; repeat for more than one (all)"
    )
    which.add_argument("--selector", metavar="LABELS", default="", help="label selector of pods, as for kubectl")
    which.add_argument(
        "--bare", default="", metavar="LABELS", help="label selector of pods that are jobs although they have no owner"
    )
    which.add_argument("--least-gpus", metavar="N", type=int, default=0, help="ignore jobs with fewer GPUs (0)")
    which.add_argument(
        "--most-reports", metavar="N", type=int, default=20, help="report at most this many attempts of one job (20)"
    )
    which.add_argument(
        "--user-from", action="append", metavar="NAME", help="label or annotation that names the user of a job"
    )
    when = parser.add_argument_group("timing, in seconds")
    when.add_argument(
        "--settle",
        metavar="SECONDS",
        type=float,
        default=120,
        help="wait this long for the other pods of a failed job (120)",
    )
    when.add_argument(
        "--echo",
        metavar="SECONDS",
        type=float,
        default=2100,
        help="pods that end within this time after a report belong to it (2100)",
    )
    when.add_argument(
        "--oldest", metavar="SECONDS", type=float, default=86400, help="ignore failures older than this (86400)"
    )
    cluster = parser.add_argument_group("cluster, when run outside of it")
    cluster.add_argument("--kubeconfig", metavar="FILE", type=Path, help="kubeconfig file ($KUBECONFIG)")
    cluster.add_argument("--context", metavar="NAME", help="context in the kubeconfig file")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Watches until SIGTERM or SIGINT. Raises TriageError if a setting is wrong."""
    from torchtriage.logging_config import configure
    from torchtriage.watcher.kubernetes_api import connected
    from torchtriage.watcher.watcher import Watcher

    configure(os.environ.get("TRIAGE_LOG_LEVEL", "info"), os.environ.get("TRIAGE_LOG_FORMAT", "text"))
    watcher = Watcher(_options(given), connected(given.kubeconfig, given.context))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watcher.stop())
    watcher.run()
    return 0


def _options(given: argparse.Namespace) -> Options:
    from torchtriage.watcher.options import Options

    try:
        folders = {"spool": str(given.folder / "spool"), "scratch": str(given.folder)}
        asked = argparse.Namespace(url=given.url, cluster=given.cluster, **folders)
        client = settings_of(asked, 300)
    except ValueError as error:
        raise SettingError(str(error)) from None
    if not client.url:
        raise SettingError("TORCHTRIAGE_URL is not set")
    # Only the cluster is the same for all jobs; the other variables describe the watcher's own pod.
    facts = {name: text for name, text in client.facts.items() if name == "cluster"}
    return Options(
        client._replace(facts=facts),
        given.folder,
        namespaces=tuple(given.namespace or ()),
        selector=given.selector,
        bare=given.bare,
        users=tuple(given.user_from or _USERS),
        least_gpus=given.least_gpus,
        most_reports=given.most_reports,
        settle=given.settle,
        echo=given.echo,
        oldest=given.oldest,
        port=given.port,
    )
