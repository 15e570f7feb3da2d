"""From the cells that ran to what ranks have missed, and in which order to send it to them (pure)."""
