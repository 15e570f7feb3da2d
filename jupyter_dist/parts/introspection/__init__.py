"""Completions, and documentation of names, as a rank has them."""

WORDS = (  # by which code names it
    "introspection",
    "group[.](?:complete|inspect)",
    "completion_?(?:model|info)",
    "inspection_?(?:model|info|kernel)",
)
COMMON_WORDS = ("complete", "inspect", "complete_request", "inspect_request")  # Jupyter's own
