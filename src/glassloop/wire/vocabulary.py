"""The words in which endpoints refuse, for `wire/rejection` and the rules it asks. Searched in lower-cased text."""

from __future__ import annotations

import re

REFUSED = (
    r"(?:not\s+(?:currently\s+|yet\s+)?(?:a\s+)?(?:trained|designed|able|capable|supported|permitted|allowed|enabled|available|implemented|valid"
    r"|recogni[sz]ed|compatible|accepted|defined|expected|one\s+of|known)|unsupported|unknown|unrecogni[sz]ed|unexpected"
    r"|extra\s+(?:inputs?|fields?|keys?|param\w*)|extra_forbidden|forbidden|invalid|illegal|prohibited|incompatible"
    r"|(?:do|does|did|is|are|can|could|must|may|should)(?:n't|\s+not|not)\s+(?:\w+\s+)?(?:support|allow|accept|permit"
    r"|recogni[sz]e|have|handle|be|exist|contain)\w*|additional\s+propert\w+|no\s+such|cannot|can't|disabled|unavailable"
    r"|only\s+(?:supported|available|offered)\s+(?:by|with|on|for|in)\b"
    r"|deprecated|removed|no\s+longer|no\s+endpoints?\s+found|不支持|无效|非法|未知|不允许|不合法|错误)"
)
"""Word class of refusal: unsupported, unknown, extra, invalid, …"""

MISSING = (
    r"(?:missing|required|requires?|must\s+(?:be\s+|also\s+)?(?:passed|provided|included|present|sent|returned|set"
    r"|specified|defined?|declared?|have|contain|include)|not\s+(?:found|provided|passed|present|set)|cannot\s+be\s+empty|must\s+not\s+be"
    r"\s+empty|is\s+empty|expect(?:s|ed)|without|lacks?|lacking|needs?|缺少|缺失|必须)"
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


_OF_OURS = (
    r"tools\b|functions\b|messages?\b|tool_choice\b|(?:tool|function|json|input|output)[ _](?:definition|schema)s?\b"
    r"|response_format\b|chat[ _]template|prompt[ _]template|jinja"
)
UNREAD_REQUEST = pattern(
    rf"fail\w* to (?:parse|read|validate|convert|apply|render|compile) (?:the |input |request )?(?:{_OF_OURS})",
    r"\bjinja\b[^\n]{0,40}(?:exception|error)|(?:error|exception|failure)[^\n]{0,40}\b(?:jinja|template)\b",
    r"\btemplate\b[^\n]{0,20}(?:error|exception)|(?:unable|failed) to (?:generate|apply)[^\n]{0,40}\btemplate\b",
)
"""The endpoint could not read what we sent: tools, messages, or what its template makes of them."""

NO_CALL_PARSER = pattern(
    r"--[a-z-]*tool[a-z-]*\b|--jinja\b|\btool[_ -]?(?:call(?:ing)?[_ -]?)?parser\b",
)
"""The server was started without what reads its model's calls: no spelling of a wish helps."""

UNREAD_CALL = pattern(
    rf"tool_use_failed|failed to (?:call|parse)(?! (?:the )?(?:{_OF_OURS}))[^\n]{{0,30}}(?:function|tool)|(?:error|failure) parsing tool call",
    r"failed to parse input at pos|malformed_function_call",
    near(
        r"\bmodel\b[^\n]{0,20}\b(?:produced|generated|returned|emitted|output)\b",
        r"invalid|malformed|unparsable",
        40,
    ),
)
"""The endpoint could not parse the call that its model wrote."""

QUOTED_CALL = re.compile(
    r"raw='(.*)', err=|failed to parse input at pos \d+: (.+)", re.DOTALL | re.IGNORECASE
)
"""… and quotes it."""

AFFORD = re.compile(r"afford\D{0,20}(\d[\d,]{0,14})")
"""So many tokens the account can still pay for."""

CREDIT = pattern(
    r"insufficient[_ ](?:\w+[_ ])?(?:quota|balance|credits?|funds?)|(?:quota|balance|credits?|funds?) (?:is |are )?insufficient",
    near(
        r"\bcredits?\b|\bbalance\b|\bfunds\b",
        r"exhausted|depleted|run out|ran out|used up|too low|negative|not enough|out of|more|zero|\bno\b",
        40,
    ),
    near(
        r"\bquota\b|free (?:tier|trial|plan)|\ballowance\b", r"not enough|exhausted|used up|ended|expired", 40
    ),
    r"\bunpaid\b|past due|key limit exceeded",
    r"\bbilling\b|payment[_ ]required|arrear|overdue|exceeded your current quota|spend(?:ing)? limit|hard limit",
    r"(?:account|service|subscription|plan)\b[^\n]{0,30}\b(?:has been|is|was) (?:paused|suspended|frozen|deactivated|terminated)",
    near(
        r"(?:spend\w*|set|budget|inference|monthly|plan'?s?) (?:\w+ )?(?:limit|allowance|cap)\b",
        r"reached|exceeded|exhausted",
        40,
    ),
    r"budget (?:has been )?exceeded|余额|欠费|充值|access_terminated|额度",
)
"""No money or quota left."""

SURELY_CREDIT = pattern(r"insufficient[_ ](?:\w+[_ ])?(?:quota|balance|credits?|funds?)|余额|欠费|arrear")
"""… and none that comes back by waiting."""

THROTTLED = pattern(
    r"rate[ _-]?limit|too[ _]many[ _](?:requests|concurrent|tokens, please wait)|throttl|overloaded|over capacity|at capacity",
    r"out of capacity|capacity (?:exceeded|reached|constraints)|resource[ _]exhausted|slow down|concurren(?:t|cy)[^\n]{0,30}(?:limit|exceed|too)",
    r"(?:requests|tokens) per (?:second|minute|min|hour|day)|\b[rt]p[md]\b|quota (?:exceeded|metric)|(?:server|service|system|engine|model) is (?:currently )?(?:too )?busy",
    r"(?:daily|hourly|weekly|requests?|usage|qps|qpm) (?:\w+ )?limit (?:is |has been |was )?(?:reached|exceeded|hit)",
    r"high (?:demand|traffic|load)|heavy load|繁忙|限流|频率|频繁|并发|过载|稍后",
)
"""Too much at once: waiting helps."""

OUTAGE = pattern(
    r"internal(?:[ _]server)?[ _]error|bad gateway|gateway time-?out|timed? ?out|temporar\w+|unavailable|upstream|try again|retry",
    r"connection (?:error|reset|refused|closed)|provider returned error|server[ _]error|no (?:healthy|available)|overload|unexpected error",
    r"server had an error|failed to (?:fetch|connect)|econn|loading model|model is loading|not ready|服务异常|系统错误|内部错误|重试",
)
"""Something broke on the other side."""

VAGUE = pattern(
    r"provider returned error|upstream|internal(?:[ _]server)?[ _]error|unexpected error|try again|temporar\w+|timed? ?out"
)
"""Says that something upstream failed, and not what."""

FILTERED = pattern(
    r"content[_ -]?(?:filter|policy|management|moderation|violation)|data_?inspection|responsible ?ai|\bflagged\b|\bmoderation\b",
    r"inappropriate|sensitive (?:content|words?|information)|unsafe content|prohibited[ _](?:content|use)|safety (?:system|filter|reasons|checks?|settings)",
    near(r"\bguardrails?\b", r"block\w*|interven\w*|reject\w*|violat\w*|trigger\w*", 60),
    near(
        r"\bcontent\b|\brequest\b|\binput\b|\bprompt\b|\boutput\b",
        r"(?:exists?|high|considered)[ _]risk|\brisk(?:y| control)|\bnew_sensitive\b",
        60,
    ),
    r"usage polic(?:y|ies)|violat\w+[^\n]{0,40}polic(?:y|ies)|违规|敏感|不安全|风险内容",
)
"""A content filter."""

KEY = pattern(
    near(
        r"\bapi[ _-]?keys?\b|credentials?\b|auth(?:entication|orization)?\b(?:[ _]?(?:token|header|key))?|access[ _]token|security[ _]token|secret[ _]key|\blogin\b",
        r"invalid|incorrect|missing|wrong|expired|revoked|disabled|not (?:valid|found|provided)|no\b|fail\w*|required|malformed",
        30,
    ),
    r"no connected (?:db|database)|\b(?:db|database) (?:is )?not connected|not connected to (?:a |the |any )?(?:db|database)",
    r"unauthori[sz]ed|unauthenticated|invalid_api_key|无效的令牌|令牌无效|身份验证|鉴权|认证失败|api[ _]?key[^\n]{0,10}(?:无效|错误)",
)
"""The key is missing, wrong or not allowed."""

UNKNOWN_MODEL = pattern(
    r"model_?not_?(?:found|supported)|unsupported_?model|requested model is not supported|deployment_?not_?found"
    r"|(?:^|\n|[.:,] )(?:the )?(?:requested |specified )?model:? ['\"`]?[\w./:-]+['\"`]? is not supported\s*(?:\.|$|\n|\bon\b|\bby\b|\bat\b)"
    r"|\bmodel (?:id|identifier|name)\b[^\n]{0,20}(?:invalid|unknown|not found)|(?:could not|cannot|can't|did not) find (?:the )?model"
    r"|not found (?:the )?model|\bmodel\b[^\n]{0,30}end[ -]of[ -]life|no models? (?:is |are )?(?:currently )?loaded|load a model first"
    r"|(?:unknown|invalid|no such|non-?existent|unrecogni[sz]ed)[ _]model\b(?! parameter)|not a valid model",
    r"\bmodel\b[^\n]{0,120}?(?:does not exist|doesn't exist|not exist|(?<!tool )not found|no longer available|was deprecated|has been (?:deprecated|decommissioned|retired|removed)|is not available|not available|isn't available|(?:not|n't) (?:yet |currently )?(?:loaded|served|deployed|hosted|installed|running)|is not supported by (?:any|this) provider)",
    r"no (?:available )?(?:channel|endpoints?|providers?|deployment|distributor)s?[^\n]{0,30}(?:found |available )?for (?:the |this )?(?:model|[\w./-]+/)",
    r"deployment[^\n]{0,40}does not exist|(?:does not|do not) have access to[^\n]{0,20}model|模型[^\n]{0,40}(?:不存在|未找到|无效|无可用|已下线)|无可用渠道",
)
"""No such model."""

NO_ROUTE = pattern(
    r"not found|no route|cannot post|not allowed|unknown (?:url|path|endpoint)|invalid url|does not exist"
)
"""No such address."""

SAYS_NOTHING = re.compile(
    r"(?:\W|error|http|400|422|bad[ _]request|invalid[ _]request(?:_error)?|unprocessable|entity|none|null|status|code|\(no body\))*"
)
"""An error text that says no more than its status."""
