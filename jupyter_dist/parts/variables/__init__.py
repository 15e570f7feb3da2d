"""The variables of ranks: listed side by side, with what holds their memory, and compared."""

# By which code names it. Many sentences have variables, and other features compare, too.
WORDS = (
    "dist_(?:variables|compare)",
    "variable_?tables?",
    "variables_?(?:model|panel|view)",
    "memory_?holders",
    "held_?memory",
    "compare_?(?:request|command)",
    "(?:list|fold|ask)_variables",
    "open_?variables",
)
MAGICS = {
    "%dist_variables": "In JupyterLab, choose Variables in the rank picker; in Python, group.variables().",
    "%dist_compare": "In JupyterLab, choose Compare in the panel of variables; in Python, group.compare().",
}
COMMON_WORDS = ("variables", "compare")  # of the environment and of debuggers; checks compare, too
