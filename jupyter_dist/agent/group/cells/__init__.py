"""The cells of a group: what each is and has become, in which order they run, and how they are sent to ranks."""
