"""What the server, agents, ranks and pages are sent: requests, queries, messages and specifications."""
