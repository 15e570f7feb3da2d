"""What the libraries of devices and of their collectives report by themselves."""
