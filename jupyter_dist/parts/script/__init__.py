"""The cells of a notebook that ran on ranks, as a script for torchrun."""

# By which code names it. Ranks run scripts, too, and engines the scripts of their jobs.
WORDS = ("script_?(?:cell|request|export)", "export_?(?:script|command)", "write_script", "torchrun script")
COMMON_WORDS = ("script",)  # calls of ranks and options of launchers have one
