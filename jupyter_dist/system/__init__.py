"""Linux-specific code for agent, ranks and server. Standard library only: it runs in the user's environment."""
