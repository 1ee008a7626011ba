"""`read_skill`: gives the model a skill's page when it wants it. Which skills there are is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from glassloop.tools.tool import Tool, tool


def read_skill_of(pages: Mapping[str, Mapping[str, str]]) -> Tool:
    """The tool. `pages` are the texts of each skill's files by the skill's name; "" is its own page."""

    @tool(effect="read", max_output=100_000)
    def read_skill(name: str, file: str = "") -> str:
        """Read a skill: instructions for one kind of task. Use it before you do what a skill is about.

        Args:
            name: The skill's name, as it is listed.
            file: A further file of that skill, as its page names it, such as "reference.md". Without it: its page.
        """
        if name not in pages:
            raise LookupError(f"there is no skill {name!r}; there are: {', '.join(pages)}")
        texts = pages[name]
        if file not in texts:
            there = ", ".join(one for one in texts if one) or "none"
            raise LookupError(f"the skill {name!r} has no file {file!r}; further files: {there}")
        others = [one for one in texts if one]
        if file or not others:
            return texts[file]
        return f"{texts['']}\n\n(Further files of this skill: {', '.join(others)})"

    return read_skill
