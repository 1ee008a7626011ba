"""What was said when a run began, as it is noted with the run, and back. Who makes use of it: `taking_up.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from glassloop.cli.options import Options
from glassloop.cli.wording import program
from glassloop.config import SESSION
from glassloop.core.errors import ConfigError
from glassloop.core.limits import Limits
from glassloop.core.window import Window
from glassloop.models.providers import PROVIDERS
from glassloop.tools import builtin

if TYPE_CHECKING:
    from glassloop.config import Config

_NOTED = (
    *("model", "base_url", "tool_mode", "tools", "no_tools", "no_project", "notes", "system", "root"),
    *("accept_no_sandbox", "limits", "window"),
)
"""The options that make the agent. How a session is opened is said anew each time."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The options of a run as they were typed. `asked` names the model that they and the configuration made."""

    options: Options
    asked: str | None

    def command(self, session_id: str) -> str:
        """What one types to go on with the run."""
        options = self.options
        if options.model is None and options.base_url is None:
            options = replace(options, model=self.asked)
        return f"{program()} run -r {session_id}{options.spelled()}"

    @property
    def own_tools(self) -> list[str]:
        """The tools that are a person's own code."""
        return [name for name in self.options.tools if name not in builtin.names()]


def noted(options: Options, config: Config) -> str:
    """The text that is kept."""
    said = {name: getattr(options, name) for name in _NOTED}
    return json.dumps({**said, "asked": _name_of(config)}, ensure_ascii=False)


def begun_of(text: str) -> Begun | None:
    """What was noted; None where nothing was, or nothing that this version understands.

    Raises `click.UsageError` if its folder is gone: elsewhere its tools would work on other files.
    """
    try:
        said = json.loads(text)
        asked = said.pop("asked")
        options = Options(**{name: _value(name, said[name]) for name in _NOTED}, said_by=SESSION)
        Limits(**dict(options.limits))
        Window(**dict(options.window))
        return Begun(options, asked if isinstance(asked, str) else None)
    except (ValueError, TypeError, KeyError, AttributeError, ConfigError):
        return None


_KINDS = {one.name: str(one.type) for one in fields(Options)}


def _value(name: str, value: Any) -> Any:
    """JSON has lists for tuples. Raises ValueError for a value that the option cannot have."""
    match _KINDS[name]:
        case "str | None" if value is None or isinstance(value, str):
            return value
        case "bool" if isinstance(value, bool):
            return value
        case "tuple[str, ...]" if all(isinstance(one, str) for one in value):
            return tuple(value)
        case "tuple[tuple[str, Any], ...]":
            return tuple((str(one), said) for one, said in value)
    raise ValueError(f"{name} cannot be {value!r:.60}")


def _name_of(config: Config) -> str | None:
    """The model in one word, as `-m` takes it."""
    if config.model is None:
        return None
    if config.base_url:
        return f"{config.base_url}#{config.model}"
    return f"{config.provider}:{config.model}" if config.provider in PROVIDERS else None
