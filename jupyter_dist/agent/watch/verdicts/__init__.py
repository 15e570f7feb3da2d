"""Who waits for whom, judged from what ranks report of themselves. Pure."""
