"""`glassloop chat`: a conversation."""

from __future__ import annotations

import click

from glassloop.cli.keeping import keeping_of
from glassloop.cli.looping import run_async
from glassloop.cli.options import Options, agent_options, session_options, surroundings
from glassloop.cli.printing import announce
from glassloop.cli.taking_up import continued


@click.command()
@agent_options
@session_options
@click.option("--yes", is_flag=True, help="Let every tool call run without asking.")
def command(yes: bool, **chosen: object) -> int:
    """Talk with a model; it may call the tools.

    Type /help for what else can be typed. Questions may also be piped in, a line each.

    \b
      glassloop chat -m ollama:qwen3
      glassloop chat -T tools.py --notes ~/notes
      glassloop chat -c                     the last one of this folder goes on
    """
    options = Options(**chosen)  # type: ignore[arg-type]
    if options.continues:
        options = continued(options)
    config = options.config()
    announce(config)
    if config.model is None:
        from glassloop.cli.welcome import show_welcome

        return show_welcome(config)
    from glassloop.cli.chat import talk

    keeping, session = keeping_of(options, config)
    try:
        around = surroundings(options, config)
        return run_async(talk(options, config, keeping, session, around, yes=yes))
    finally:
        keeping.close()
