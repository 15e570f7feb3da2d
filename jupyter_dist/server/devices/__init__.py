"""Telemetry of this machine's accelerators and of the machine itself, on demand."""
