"""Tools of MCP servers, and ready-made tools offered as an MCP server. Needs the extra `mcp` (the official SDK).

`settings` reads how a server is reached, `definitions` what it says of its tools, `results` what a call gave: all
pure. `lenient` mends what servers get wrong before the SDK reads it. `stdio` and `http` carry the messages, with
bounds, and `protocol` is what is said in them. `server` is one server's life, `servers` are many of them on a thread
of their own, and `serving` is the other side. Who trusts a server is not decided here.
"""

from __future__ import annotations

from glassloop.tools.mcp.servers import McpTools, mcp_tools
from glassloop.tools.mcp.settings import ServerSettings, read_servers

__all__ = ["McpTools", "ServerSettings", "mcp_tools", "read_servers"]
