"""What agent, ranks and server ask of the Linux kernel. Standard library only: it runs in the user's environment."""
