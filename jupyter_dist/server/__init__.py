"""The Jupyter server extension: its groups, and their HTTP API. torch is never imported here."""
