"""Which cells call what all ranks must call, by their code alone."""
