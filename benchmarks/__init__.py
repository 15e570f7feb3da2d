"""The figures of docs/benchmarks, each measured beside its rivals in the same run: `python -m benchmarks`."""
