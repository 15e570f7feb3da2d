"""JupyterLab's debugger on ranks (docs/decisions/0021-debuggers-of-ranks.md)."""

WORDS = ("debug_?(sessions?|messages?|requests?|repl(y|ies)|connections?)", "dap", "dapmessages", "pydevd_?sessions?")
