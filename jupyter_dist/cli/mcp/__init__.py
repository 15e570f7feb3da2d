"""`jupyter dist mcp`: groups for language-model agents, over the Model Context Protocol."""
