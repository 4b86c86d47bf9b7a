"""`torchtriage watch-kubernetes`: reports the training jobs of a cluster that fail, with no change to any."""

from __future__ import annotations

import argparse
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.client.torchtriage_client import settings_of
from torchtriage.errors import SettingError, TriageError

if TYPE_CHECKING:
    from torchtriage.watcher.options import Options

_USERS = ("torchtriage/user", "user", "username", "owner")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("watch-kubernetes", help="report the failed training jobs of a Kubernetes cluster")
    where = parser.add_argument_group("where to report")
    where.add_argument("--url", help="the service ($TORCHTRIAGE_URL); its token stands in $TORCHTRIAGE_TOKEN")
    where.add_argument("--cluster", help="the cluster's name in reports ($TORCHTRIAGE_CLUSTER)")
    where.add_argument("--folder", type=Path, default=Path("/data"), help="what must survive a restart (/data)")
    where.add_argument("--port", type=int, default=9090, help="of /healthz, /readyz and /metrics (9090)")
    which = parser.add_argument_group("which jobs")
    which.add_argument("--namespace", action="append", help="several times; without it all namespaces")
    which.add_argument("--selector", default="", help="labels that pods must have, as kubectl takes them")
    which.add_argument(
        "--bare", default="", metavar="LABELS", help="pods without an owner are jobs where they have these"
    )
    which.add_argument("--least-gpus", type=int, default=0, help="jobs with fewer are left alone (0)")
    which.add_argument("--most-reports", type=int, default=20, help="attempts of one job that are reported (20)")
    which.add_argument("--user-from", action="append", metavar="NAME", help="label or annotation with a job's user")
    when = parser.add_argument_group("when, in seconds")
    when.add_argument("--settle", type=float, default=120, help="how long a failed job's other pods may take (120)")
    when.add_argument("--echo", type=float, default=2100, help="what still ran then belongs to the report (2100)")
    when.add_argument("--oldest", type=float, default=86400, help="how old a failure may be (86400)")
    cluster = parser.add_argument_group("which cluster, outside of one")
    cluster.add_argument("--kubeconfig", type=Path, help="a file of kubectl's ($KUBECONFIG)")
    cluster.add_argument("--context", help="of that file")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Watches until SIGTERM or SIGINT. Raises TriageError where the extra is missing or something is set wrong."""
    try:
        from torchtriage.watcher.kubernetes_api import connected
        from torchtriage.watcher.watcher import Watcher
    except ImportError:
        raise TriageError("this needs the extra: pip install 'torchtriage[kubernetes]'") from None
    from torchtriage.logging_config import configure

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
    # Only the cluster is the same for all jobs: what else the variables say is of this very pod.
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
