"""The figures of docs/benchmarks.md, each measured beside its rivals in the same run: `python -m benchmarks`."""
