"""A part that puts faults into other code of its process, as errors in that code would be: for tests."""
