"""`torchtriage mcp`: serves MCP tools to an agent or editor on this machine, over standard input and output."""

from __future__ import annotations

import argparse
import os


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "mcp",
        help="serve agents and editors over MCP",
        description="Serve agents and editors over standard input and output (Model Context Protocol).",
    )
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Answers until standard input ends. Raises the same TriageErrors as `serve`."""
    from torchtriage.cli.logging_setup import start_logging
    from torchtriage.knowledge.cache import cache_folder, load_index
    from torchtriage.services.service import close_service, open_service
    from torchtriage.services.triage_incident import triage_incident
    from torchtriage.settings import Settings
    from torchtriage.web.mcp.server import server
    from torchtriage.web.mcp.tools import Tools

    settings = Settings.from_environment(os.environ)
    start_logging(settings)
    service = open_service(settings, triage_incident, working=False)
    try:
        server(Tools(service, lambda: load_index(service.knowledge, cache_folder())), local=True).run("stdio")
    finally:
        close_service(service)
    return 0
