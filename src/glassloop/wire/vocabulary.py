"""The words in which endpoints refuse, shared by the rules of `wire/refusals`. Searched in lower-cased text."""

from __future__ import annotations

import re

REFUSED = (
    r"(?:not\s+(?:currently\s+|yet\s+)?(?:a\s+)?(?:supported|permitted|allowed|enabled|available|implemented|valid"
    r"|recogni[sz]ed|compatible|accepted|defined|expected|one\s+of|known)|unsupported|unknown|unrecogni[sz]ed|unexpected"
    r"|extra\s+(?:inputs?|fields?|keys?|param\w*)|extra_forbidden|forbidden|invalid|illegal|prohibited|incompatible"
    r"|(?:do|does|did|is|are|can|could|must|may|should)(?:n't|\s+not|not)\s+(?:\w+\s+)?(?:support|allow|accept|permit"
    r"|recogni[sz]e|have|handle|be|exist|contain)\w*|additional\s+propert\w+|no\s+such|cannot|can't|disabled|unavailable"
    r"|deprecated|removed|no\s+longer|no\s+endpoints?\s+found|不支持|无效|非法|未知|不允许|不合法|错误)"
)
"""Word class of refusal: unsupported, unknown, extra, invalid, …"""

MISSING = (
    r"(?:missing|required|requires?|must\s+(?:be\s+|also\s+)?(?:passed|provided|included|present|sent|returned|set"
    r"|specified|have|contain|include)|not\s+(?:found|provided|passed|present|set)|cannot\s+be\s+empty|must\s+not\s+be"
    r"\s+empty|is\s+empty|expected|without|lacks?|lacking|needs?|缺少|缺失|必须)"
)
"""Word class of absence."""


def near(first: str, second: str, gap: int = 60) -> str:
    """A pattern for the two within `gap` characters of one line, in either order."""
    between = rf"[^\n]{{0,{gap}}}?"
    return rf"(?:(?:{first}){between}(?:{second})|(?:{second}){between}(?:{first}))"


def pattern(*alternatives: str) -> re.Pattern[str]:
    """Any of these, in lower-cased text."""
    return re.compile("|".join(f"(?:{each})" for each in alternatives))


def named(field: str) -> str:
    """A pattern for a field's name in any of its spellings: `tool_choice`, `toolChoice`, "tool choice"."""
    return r"(?<![a-z0-9_])" + r"[ _-]?".join(map(re.escape, field.lower().split("_"))) + r"(?![a-z0-9_])"
