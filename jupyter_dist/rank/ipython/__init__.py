"""The changes of ranks to IPython: displays, tracebacks, and differences between its versions."""
