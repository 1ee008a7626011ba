"""The MCP servers of other people: the reference servers, from npm and from PyPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"
TIME = "mcp-server-time==2026.10.19"
FETCH = "mcp-server-fetch==2026.10.24"
GIT = "mcp-server-git==2026.10.19"

Make = Callable[[str, Path], None]


def builders(from_npm: Make, into_environment: Make) -> Mapping[str, Make]:
    """How each is installed, by its requirement."""
    return {
        EVERYTHING: from_npm,
        FILESYSTEM: from_npm,
        TIME: into_environment,
        FETCH: into_environment,
        GIT: into_environment,
    }
