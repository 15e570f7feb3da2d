"""Groups over several machines: the head's side (head.py, remote.py) and a node agent's (member.py)."""
