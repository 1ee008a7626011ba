"""How an exported page looks: quiet, wide enough to read, in the reader's own fonts, light or dark as they like."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf8; --card: #ffffff; --ink: #1f2328; --soft: #656d76; --line: #e4e1db; --tint: #f3f1ec;
  --blue: #1f5fa8; --blue-tint: #eef4fb; --green: #1a7f4b; --red: #b3372c; --red-tint: #fcf0ee; --amber: #8a5a00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15171a; --card: #1c1f23; --ink: #e6e4df; --soft: #969ca4; --line: #2e3238; --tint: #23272c;
    --blue: #8ab8ee; --blue-tint: #1a2735; --green: #6cc795; --red: #f09187; --red-tint: #33201e; --amber: #e3b341;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 3rem 1.25rem 4rem; max-width: 50rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.65 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Hiragino Sans GB",
    "Microsoft YaHei", "Noto Sans CJK SC", "Hiragino Kaku Gothic ProN", "Apple SD Gothic Neo", sans-serif;
  overflow-wrap: anywhere; line-break: strict;
}
h1 { font-size: 1.7rem; line-height: 1.3; letter-spacing: -.015em; margin: 0 0 .6rem; text-wrap: balance; }
h2 { font-size: .8rem; font-weight: 600; color: var(--soft); margin: 0 0 .6rem; letter-spacing: .02em; }
h3, h4, h5, h6 { font-size: 1rem; line-height: 1.4; margin: 1.2em 0 .4em; }
p, ul, ol, blockquote, pre, .wide { margin: 0 0 .8em; }
:is(article, div, details, blockquote) > :last-child { margin-bottom: 0; }
code, pre {
  font: .875em/1.55 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Noto Sans Mono CJK SC", monospace;
}
:not(pre) > code { background: var(--tint); border-radius: .3em; padding: .1em .35em; }
pre {
  background: var(--tint); border-radius: .5rem; padding: .7rem .9rem; overflow-x: auto; white-space: pre-wrap;
  tab-size: 4;
}
pre[data-language]::before { content: attr(data-language); display: block; color: var(--soft); font-size: .85em; }
blockquote { border-left: 3px solid var(--line); padding-left: .9rem; color: var(--soft); }
hr { border: 0; border-top: 1px solid var(--line); margin: 1.5rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93em; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .8rem .35rem 0; text-align: start; vertical-align: top; }
img { max-width: 100%; height: auto; border-radius: .5rem; border: 1px solid var(--line); }
.facts { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; list-style: none; padding: 0; color: var(--soft);
  font-size: .88rem; }
.run { padding-top: 1.2rem; }
.run + .run { border-top: 1px solid var(--line); margin-top: 1.8rem; }
article { margin: 0 0 1.6rem; }
.user { background: var(--blue-tint); border-radius: .8rem; padding: 1rem 1.2rem; }
.user h2 { color: var(--blue); }
.took { font-weight: 400; color: var(--soft); margin-inline-start: .8em; font-size: .8rem;
  font-variant-numeric: tabular-nums; }
.call { border: 1px solid var(--line); border-radius: .7rem; background: var(--card); padding: .8rem 1rem;
  margin: .9rem 0; }
.call h3 { margin: 0 0 .6rem; display: flex; flex-wrap: wrap; align-items: baseline; gap: .5em; }
.call h3 code { background: none; padding: 0; font-weight: 600; font-size: .95rem; }
.state { font-size: .75rem; font-weight: 600; color: var(--soft); }
.call.ok .state { color: var(--green); }
.call:is(.error, .refused) .state { color: var(--red); }
.call:is(.unknown, .open) .state { color: var(--amber); }
.call.error { border-color: color-mix(in srgb, var(--red) 45%, var(--line)); }
.result pre { background: none; border: 1px solid var(--line); }
details { margin: 0 0 .8em; }
summary { cursor: pointer; color: var(--soft); font-size: .88rem; border-radius: .3rem; }
summary:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
details[open] > summary { margin-bottom: .5rem; }
.thinking, .system { border-inline-start: 3px solid var(--line); padding-inline-start: .9rem; color: var(--soft); }
.note { color: var(--soft); font-size: .9rem; margin: 0 0 1.2rem; }
.mend { color: var(--amber); font-size: .85rem; }
.failed { background: var(--red-tint); color: var(--red); border-radius: .7rem; padding: .8rem 1rem;
  margin: 0 0 1.2rem; }
.about, footer, .file { color: var(--soft); font-size: .85rem; }
footer { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: 1rem; }
@media (max-width: 30rem) { body { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.35rem; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; background: none; }
  .call, .user, .failed { break-inside: avoid; }
}
"""
