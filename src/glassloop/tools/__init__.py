"""Floor 2: tools, from a Python function to a validated, timed, capped call.

`tool` is `@tool` and `Tool`: `schema`, `hints`, `docstrings` and `inlining` read the function. `toolbox` prepares and
runs calls: `calls`, `coerce`, `values` and `wording` fit the arguments, `approval` says who must be asked,
`rules` and `matching` read the rules that people write (on `targets`), `untrusted` marks the words of others, `running`
and `output` do the rest. `loading` finds tools by name, `check` advises on them, `builtin/` has the ready-made ones.
"""
