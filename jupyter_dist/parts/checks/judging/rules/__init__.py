"""A rule for each kind of error. Each returns a finding, or None where it is not sure."""
