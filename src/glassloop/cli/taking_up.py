"""What -c and -r take from a session's last run where the command line is silent: its model, tools and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glassloop.cli.begun import Begun, begun_of
from glassloop.cli.failures import Said
from glassloop.cli.going_on import say_whole
from glassloop.cli.keeping import found, open_store, unfinished
from glassloop.cli.options import Options
from glassloop.cli.printing import say
from glassloop.cli.safe_text import one_line, visible
from glassloop.cli.screen import Line
from glassloop.config import SESSION


def continued(options: Options, message: str = "") -> Options:
    """The options that a session is continued with. A run that broke off goes on as it began; a new message needs
    nothing of the session but its model, and that only where no other is set.

    Raises `SessionError` if there is no such session, and `Said` where only a person may say what is missing.
    """
    store = open_store()
    session_id = found(store, options.resume)
    options = replace(options, last=False, resume=session_id)
    begun = begun_of(store.command(session_id))
    if begun is None:
        return options
    if not message and not options.accept_changes and unfinished(store, session_id):
        options = _as_it_began(options, begun, begun.command(session_id))
    elif message:
        _say_other_tools(options, begun.options)
    if begun.asked is not None and options.config().model is None:
        say(Line(f"· with the model of the session: {one_line(begun.asked)}", "quiet"))
        options = replace(options, model=begun.asked, base_url=None, said_by=SESSION)
    return options


def _as_it_began(options: Options, begun: Begun, command: str) -> Options:
    """What was not typed now is as it was typed then; code of a person's own, and leave to run programs unconfined,
    are given by that person alone, each time."""
    first = begun.options
    taken: dict[str, Any] = {
        name: getattr(first, name)
        for name in ("tool_mode", "notes", "system", "root")
        if getattr(options, name) is None
    }
    if options.model is None and options.base_url is None and (first.model or first.base_url):
        taken |= {"model": first.model, "base_url": first.base_url, "said_by": SESSION}
    if not options.tools and not options.no_tools:
        _refuse_own_tools(begun, command)
        taken |= {"tools": first.tools, "no_tools": first.no_tools}
    elif (options.tools, options.no_tools) != (first.tools, first.no_tools):
        say_whole([Line(visible(f"! the run began with other tools: {command}"), "mend")])
    filled = replace(
        options,
        **taken,
        no_project=options.no_project or first.no_project,
        limits=(*first.limits, *options.limits),
        window=(*first.window, *options.window),
    )
    if filled != options:
        say(Line(visible(f"· the run goes on as it began:{filled.spelled()}"), "quiet"))
    return filled


def _say_other_tools(options: Options, before: Options) -> None:
    """A new message has the tools that are typed with it. Who typed none may have had those of the last run in mind."""
    had = Options(tools=before.tools, no_tools=before.no_tools)
    now = Options(tools=options.tools, no_tools=options.no_tools)
    if now == Options() != had:
        say(Line(visible(f"· its last run had{had.spelled()}: type that again for the same tools"), "quiet"))


def _refuse_own_tools(begun: Begun, command: str) -> None:
    if not begun.own_tools:
        return
    names = ", ".join(begun.own_tools)
    raise Said(
        f"This run has tools of your own ({names}), and your code runs only where you name it. To go on:\n"
        f"  {command}\n"
        "--accept-changes goes on without them."
    )
