"""The tools as a server of the Model Context Protocol; needs the optional extra `mcp`."""

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


# What is offered, and the scope that it needs; the last one only to a person's own agent.
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
    """-> a server of the tools; a `local` one speaks with a person's own agent and may read that person's files."""
    offered = [
        _described(method).model_copy(update={"fn": _guarded(partial(method, tools), scope)})
        for method, scope in (_OFFERED if local else _OFFERED[:-1])
    ]
    return MCPServer("torchtriage", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING", tools=offered)


@cache
def _described(method: Callable[..., Any]) -> Tool:
    """-> a tool as agents are told of it, without what it does. Its forms are made once a process: all take as long as
    the rest of a start."""
    _, *given = inspect.signature(method, eval_str=True).parameters.values()
    seen = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)

    @wraps(method)
    def form(**_: Any) -> None:
        """Takes what the tool takes."""

    form.__signature__ = inspect.Signature([*given, seen])  # type: ignore[attr-defined]
    form.__annotations__ = {one.name: one.annotation for one in (*given, seen)}
    # The answers' form is told by the API's documents; here it would only fill the agent's memory.
    return Tool.from_function(form, annotations=_READ_ONLY, structured_output=False)


def _guarded(tool: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """-> the tool, for callers that may use it; our errors become sentences that the agent reads."""

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
