"""What is measured besides us: each floor and rival in a process of its own, told what to do by JSON lines."""
