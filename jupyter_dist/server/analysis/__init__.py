"""What a group computes on request: compared variables, and what is known of saves."""
