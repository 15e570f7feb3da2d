"""What a rank prints and displays, in order, on its way to the agent."""
