"""One module per figure: `measure(options)` returns its tables."""
