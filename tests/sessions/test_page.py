"""The exported page: it shows everything, runs nothing and asks nobody."""

import asyncio
from collections import Counter
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions import kit

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
    User,
)
from glassloop.core.journal import Cancelled, ModelFailed, Record, RunEnd
from glassloop.core.tools import Decision
from glassloop.sessions import prose
from glassloop.sessions.journal import SqliteJournal
from glassloop.sessions.store import Store

VOID = {"meta", "img", "br", "hr"}
ATTRIBUTES = {
    "class",
    "dir",
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "alt",
    "src",
    "start",
    "data-language",
}
TAGS = VOID | set(
    "html head title style body header h1 h2 h3 h4 h5 h6 ul ol li main section article aside details summary div p pre "
    "code strong em b blockquote table thead tbody tr th td footer span".split()
)


class Strict(HTMLParser):
    """Reads a page as a browser would, and notes everything that should not be there."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.text, self.wrong = [], "", []
        self.feed(source)
        self.close()
        self.wrong += [f"left open: {tag}" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES or (name == "src" and not value.startswith("data:image/")):
                self.wrong.append(f"<{tag} {name}={value}>")
            if name == "data-language":
                self.text += value
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")

    def handle_data(self, data):
        self.text += data


HOSTILE = [
    "<script>alert(1)</script>",
    "</code></pre></style><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![i](https://evil.example/x.png)",
    "`<b>` **<i>** *<u>* \n# <h1>\n- <li>\n> <q>\n| <td> |\n|---|\n| <td> |",
    '```"><script>\n</code></pre><script>\n```',
    "\x1b]0;pwned\x07 \u202egnp.exe \u200b \U000e0041",
    "&lt;script&gt; &amp; &#60;",
    "</title></head><body onload=alert(1)>",
]


def everything(text):
    made = ToolCall("c1", text, {text: [text]}, text, text)
    return [
        System(text),
        User(
            (Text(text), File(text, text, b"x"), Image(text, b"x"), Image("image/png", b"x"), Image(url=text))
        ),
        Reply(text, text, (made,), text, mends=(Mend(text, text),), model=text),
        Decision("c1", False, text, text),
        ToolResult("c1", text, (Text(text), Text(text * 200))),
        Note(text),
        Summary(text, 1),
        ModelFailed("X", text),
        Cancelled(text),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_anybody_said_becomes_part_of_the_page(tmp_path, text):
    path = tmp_path / "s.db"

    async def work():
        journal = SqliteJournal(path)
        await journal.open(kit.start(agent=text))
        await journal.decide("run1", [Record(number, one) for number, one in enumerate(everything(text), 1)])
        await journal.finish(RunEnd("run1", "failed", text, text))

    asyncio.run(work())
    told = Store(path).export_html("session1")
    found = Strict(told)
    assert found.wrong == []
    assert not set("\x1b\x07\u202e\u200b\U000e0041") & set(told)
    assert "url(" not in told
    assert "@import" not in told
    assert told.count("<style>") == 1


PIECES = st.sampled_from([
    *HOSTILE, "\n", "\n\n", " ", "# ", "- ", "1. ", "999999999. ", "> ", "```", "~~~", "`", "``", "**", "*", "|", "|--|", "---", "a", "字", "\\", "<", "&", "\r\n", "\t",
])  # fmt: skip


@settings(max_examples=150)
@given(st.lists(PIECES | st.text(max_size=6), max_size=25).map("".join))
def test_any_text_becomes_html_that_is_whole(text):
    found = Strict(prose.html(text))
    assert found.wrong == []
    # Letters of ASCII may number a list or spell an escape; all others are text, and text is never lost.
    assert Counter(filter(_is_text, found.text)) == Counter(filter(_is_text, prose.visible(text)))


def _is_text(letter):
    return letter.isalpha() and not letter.isascii()


@pytest.mark.parametrize(("text", "html"), [
    ("one\ntwo\n\nthree", "<p>one<br>\ntwo</p>\n<p>three</p>"),
    ("# Big\ntext", "<h3>Big</h3>\n<p>text</p>"),
    ("- a\n- b\n  more", "<ul><li>a</li><li>b<br>\nmore</li></ul>"),
    ("3. c\n4. d", '<ol start="3"><li>c</li><li>d</li></ol>'),
    ("**bold** and *soft* and `x*y*z`", "<p><strong>bold</strong> and <em>soft</em> and <code>x*y*z</code></p>"),
    ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
    ("a_b_c and snake_case", "<p>a_b_c and snake_case</p>"),
    ("```python\nx < 1\n```\nafter", '<pre data-language="python"><code>x &lt; 1</code></pre>\n<p>after</p>'),
    ("````\n```\n````", "<pre><code>```</code></pre>"),
    ("```\nnever closed", "<pre><code>never closed</code></pre>"),
    ("> said\n> so", "<blockquote>said<br>\nso</blockquote>"),
    ("| a | b |\n|---|---|\n| 1 | 2 |", '<div class="wide"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>'),
    ("| not a table", "<p>| not a table</p>"),
    ("***both*** and **a *b* c**", "<p><strong><em>both</em></strong> and <strong>a <em>b</em> c</strong></p>"),
    ("a ******", "<p>a ******</p>"),
    ("*a **b* c**", "<p>*a <strong>b* c</strong></p>"),
    ("明天**小雨**，14 °C", "<p>明天<strong>小雨</strong>，14 °C</p>"),
    ("text\n- item", "<p>text</p>\n<ul><li>item</li></ul>"),
    ("", ""),
])  # fmt: skip
def test_what_models_write_is_shown_as_they_mean_it(text, html):
    assert prose.html(text) == html
