"""Groups for asyncio programs: the one implementation."""
