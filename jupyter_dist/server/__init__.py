"""The Jupyter server extension: groups as it knows them, and the HTTP API over them. No torch here."""
