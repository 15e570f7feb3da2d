"""How a group is found and reached: its file, the link to its server, and the processes that it ends with."""
