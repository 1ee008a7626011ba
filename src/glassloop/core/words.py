"""What the loop says: to the model in notes and refusals, and to people where a run cannot go on."""

from __future__ import annotations

from glassloop.core.entries import Mend, Reply

NUDGE = "Your last reply was empty. Give the final answer as text now, or call a tool."
REFUSED_FINAL = "This call was not run: tools are no longer available in this run."
LIMIT_REACHED = (
    "You have reached {limit}. Tools are no longer available. "
    "Answer now with what you have found, and say what is missing."
)
COST_UNKNOWN = (
    "a cost limit is set, but what a call costs is not known here: the endpoint does not report it, and no price "
    "table has this model (pip install 'glassloop[prices]' brings one). It could never stop the run: set another "
    "limit as well, such as Limits(cost=…, tokens=…)"
)
TOO_SMALL = (
    "What cannot be left out (instructions, tools, the task and the last turn) comes to about {tokens:,} tokens: "
    "give fewer tools or shorter instructions, cap what tools return "
    "(max_output), or take a model with a larger context window"
)


def repeated(name: str, times: int) -> str:
    """Told to a model that makes the same call again and again."""
    return (
        f"You have called {name} {times} times with the same arguments and got the same result. "
        "Calling it again will not change it: use what you have, try something else, or answer."
    )


def asked_again(reply: Reply) -> Mend:
    """Told to people where a reply held neither words nor calls."""
    what = "held nothing but reasoning" if reply.reasoning.strip() else "was empty"
    return Mend("empty_reply", f"the reply {what}; asked again")


def not_allowed(reason: str) -> str:
    """Told to a model whose call a person, or whoever decides for one, has denied."""
    because = f" Reason: {reason}" if reason else ""
    return f"Not run: this call was not allowed.{because}"
