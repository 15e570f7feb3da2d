"""What a process has besides its names: random states, folder, environment, history."""
