"""The MCP server that offers the tools. Needs the extra `mcp`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

from torchtriage import __version__
from torchtriage.domain.access import ANYONE, Caller, Scope
from torchtriage.errors import TriageError
from torchtriage.web.mcp.tools import Tools

_INSTRUCTIONS = """torchtriage finds what failed first in the logs of distributed PyTorch runs, and what to do about it.
For a log at hand, triage it; for failures that are stored already, list or read incidents; for a symptom without a log,
search the knowledge base."""
_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


# The tools, each with the scope that it needs. The last one is only for a local agent.
_OFFERED: tuple[tuple[Callable[..., Any], Scope], ...] = (
    (Tools.triage_log, Scope.SUBMIT),
    (Tools.search_knowledge, Scope.READ),
    (Tools.read_entry, Scope.READ),
    (Tools.list_incidents, Scope.READ),
    (Tools.read_incident, Scope.READ),
    (Tools.read_brief, Scope.READ),
    (Tools.read_log, Scope.READ),
    (Tools.similar_incidents, Scope.READ),
    (Tools.list_groups, Scope.READ),
    (Tools.read_group, Scope.READ),
    (Tools.triage_path, Scope.SUBMIT),
)


def server(tools: Tools, local: bool) -> MCPServer:
    """Returns a server of the tools. A `local` server talks to an agent on this machine, which may read the user's
    files."""
    offered = [
        _described(method).model_copy(update={"fn": _guarded(partial(method, tools), scope)})
        for method, scope in (_OFFERED if local else _OFFERED[:-1])
    ]
    return MCPServer("torchtriage", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING", tools=offered)


@cache
def _described(method: Callable[..., Any]) -> Tool:
    """Returns the description of a tool, without its implementation. It is built once per process, because building all
    of them doubles the time of a start."""
    _, *given = inspect.signature(method, eval_str=True).parameters.values()
    seen = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)

    @wraps(method)
    def form(**_: Any) -> None:
        """Has the parameters of the tool."""

    form.__signature__ = inspect.Signature([*given, seen])  # type: ignore[attr-defined]
    form.__annotations__ = {one.name: one.annotation for one in (*given, seen)}
    # The API's documentation describes the answers; here that would only fill the agent's context.
    return Tool.from_function(form, annotations=_READ_ONLY, structured_output=False)


def _guarded(tool: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """Returns the tool with a check of the caller's scope. Our errors become messages for the agent."""

    def call(*, context: Context, **arguments: Any) -> Any:
        request = context.request_context.request
        caller: Caller = getattr(request.state, "caller", ANYONE) if request is not None else ANYONE
        if not caller.may(scope):
            raise ToolError(f"the token of {caller.name} lacks the scope {scope}")
        try:
            return tool(**arguments)
        except TriageError as error:
            raise ToolError(error.message) from None

    return call
