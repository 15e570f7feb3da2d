"""Why a running cell is slow: judged from what ranks report of their pace, while the cell runs."""
