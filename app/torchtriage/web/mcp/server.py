"""The tools as a server of the Model Context Protocol; needs the optional extra `mcp`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from torchtriage import __version__
from torchtriage.domain.access import ANYONE, Caller, Scope
from torchtriage.errors import TriageError
from torchtriage.web.mcp.tools import Tools

_INSTRUCTIONS = """torchtriage finds what failed first in the logs of distributed PyTorch runs, and what to do about it.
For a log at hand, triage it; for failures that are stored already, list or read incidents; for a symptom without a log,
search the knowledge base."""
_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def server(tools: Tools, local: bool) -> MCPServer:
    """-> a server of the tools; a `local` one speaks with a person's own agent and may read that person's files."""
    made = MCPServer("torchtriage", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    offered: list[tuple[Callable[..., Any], Scope]] = [
        (tools.triage_log, Scope.SUBMIT),
        (tools.search_knowledge, Scope.READ),
        (tools.read_entry, Scope.READ),
        (tools.list_incidents, Scope.READ),
        (tools.read_incident, Scope.READ),
        (tools.read_brief, Scope.READ),
        (tools.read_log, Scope.READ),
        (tools.similar_incidents, Scope.READ),
        (tools.list_groups, Scope.READ),
        (tools.read_group, Scope.READ),
    ]
    if local:
        offered.append((tools.triage_path, Scope.SUBMIT))
    for tool, scope in offered:
        # The answers' form is told by the API's documents; here it would only fill the agent's memory.
        made.tool(annotations=_READ_ONLY, structured_output=False)(_guarded(tool, scope))
    return made


def _guarded(tool: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """-> the tool, for callers that may use it; our errors become sentences that the agent reads."""

    @functools.wraps(tool)
    def call(*, context: Context, **arguments: Any) -> Any:
        request = context.request_context.request
        caller: Caller = getattr(request.state, "caller", ANYONE) if request is not None else ANYONE
        if not caller.may(scope):
            raise ToolError(f"the token of {caller.name} lacks the scope {scope}")
        try:
            return tool(**arguments)
        except TriageError as error:
            raise ToolError(error.message) from None

    signature = inspect.signature(tool, eval_str=True)
    seen = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    call.__signature__ = signature.replace(parameters=[*signature.parameters.values(), seen])  # type: ignore[attr-defined]
    call.__annotations__ = {name: given.annotation for name, given in signature.parameters.items()} | {
        "context": Context
    }
    return call
