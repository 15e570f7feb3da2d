"""Why a running cell is slow: measured on its ranks, judged in the agent."""
