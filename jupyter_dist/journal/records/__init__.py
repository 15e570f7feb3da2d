"""One record: its bytes, its fields and their validation, and records of many ranks."""
