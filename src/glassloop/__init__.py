"""Glassloop: a tool-calling agent for every endpoint that speaks OpenAI-compatible Chat Completions.

The names below are the public ones. They load when they are first used, so that importing costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # what type checkers take for true: `typing` takes longer to load than all that is here
__version__ = "0.1.0"

_PUBLIC = {
    "glassloop.agent": ("Agent",),
    "glassloop.handles": ("Result", "Run"),
    "glassloop.core.entries": (
        "File",
        "Image",
        "Mend",
        "Note",
        "Reply",
        "Summary",
        "System",
        "Text",
        "ToolCall",
        "ToolResult",
        "Usage",
        "User",
    ),
    "glassloop.core.errors": (
        "AuthenticationFailed",
        "ConfigError",
        "ConnectionLost",
        "ContentFiltered",
        "ContextOverflow",
        "EmptyReply",
        "EndpointError",
        "GlassloopError",
        "ModelNotFound",
        "OutOfCredit",
        "OutputInvalid",
        "RateLimited",
        "ReplayMismatch",
        "RequestRejected",
        "SessionError",
        "StreamStalled",
        "ToolDefinitionError",
    ),
    "glassloop.core.events": (
        "ApprovalAsked",
        "ApprovalDecided",
        "Compacted",
        "Event",
        "Finished",
        "Learned",
        "Mended",
        "ModelFinished",
        "ModelGaveUp",
        "ModelStarted",
        "Noted",
        "ReasoningDelta",
        "Received",
        "Retrying",
        "ReviewAsked",
        "Reviewed",
        "RunStarted",
        "Switched",
        "TextDelta",
        "ToolFinished",
        "ToolProgress",
        "ToolStarted",
        "Warned",
    ),
    "glassloop.core.examples": ("Example",),
    "glassloop.core.journal": ("Journal", "MemoryJournal", "Session"),
    "glassloop.core.limits": ("Limits",),
    "glassloop.core.loop": ("Loop",),
    "glassloop.core.resolving": ("Done", "GiveUp", "Resolution", "Retry", "Unknown"),
    "glassloop.core.steps": ("Controller",),
    "glassloop.core.tools": ("Decision", "ToolSpec", "Verdict"),
    "glassloop.core.window": ("Window",),
    "glassloop.models.endpoint": ("Endpoint",),
    "glassloop.models.fallback": ("Fallback",),
    "glassloop.models.model": ("Model", "ModelRequest"),
    "glassloop.models.replay": ("ReplayModel",),
    "glassloop.models.scripted": ("ScriptedModel",),
    "glassloop.tools.builtin.python": ("code_mode",),
    "glassloop.tools.mcp": ("McpTools", "mcp_tools"),
    "glassloop.tools.rules": ("rules",),
    "glassloop.tools.tool": ("Tool", "ToolContext", "tool"),
    "glassloop.tools.toolbox": ("Toolbox", "Tools"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604

if TYPE_CHECKING:
    from typing import Any

    from glassloop.agent import Agent
    from glassloop.core.entries import (
        File,
        Image,
        Mend,
        Note,
        Reply,
        Summary,
        System,
        Text,
        ToolCall,
        ToolResult,
        Usage,
        User,
    )
    from glassloop.core.errors import (
        AuthenticationFailed,
        ConfigError,
        ConnectionLost,
        ContentFiltered,
        ContextOverflow,
        EmptyReply,
        EndpointError,
        GlassloopError,
        ModelNotFound,
        OutOfCredit,
        OutputInvalid,
        RateLimited,
        ReplayMismatch,
        RequestRejected,
        SessionError,
        StreamStalled,
        ToolDefinitionError,
    )
    from glassloop.core.events import (
        ApprovalAsked,
        ApprovalDecided,
        Compacted,
        Event,
        Finished,
        Learned,
        Mended,
        ModelFinished,
        ModelGaveUp,
        ModelStarted,
        Noted,
        ReasoningDelta,
        Received,
        Retrying,
        RunStarted,
        Switched,
        TextDelta,
        ToolFinished,
        ToolProgress,
        ToolStarted,
        Warned,
    )
    from glassloop.core.examples import Example
    from glassloop.core.journal import Journal, MemoryJournal, Session
    from glassloop.core.limits import Limits
    from glassloop.core.loop import Loop
    from glassloop.core.resolving import Done, GiveUp, Resolution, Retry, Unknown
    from glassloop.core.steps import Controller
    from glassloop.core.tools import Decision, ToolSpec, Verdict
    from glassloop.core.window import Window
    from glassloop.handles import Result, Run
    from glassloop.models.endpoint import Endpoint
    from glassloop.models.fallback import Fallback
    from glassloop.models.model import Model, ModelRequest
    from glassloop.models.replay import ReplayModel
    from glassloop.models.scripted import ScriptedModel
    from glassloop.tools.builtin.python import code_mode
    from glassloop.tools.mcp import McpTools, mcp_tools
    from glassloop.tools.rules import rules
    from glassloop.tools.tool import Tool, ToolContext, tool
    from glassloop.tools.toolbox import Toolbox, Tools


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'glassloop' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
