"""What makes cells slow: a file for each kind of cause."""
