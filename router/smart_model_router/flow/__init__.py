"""Where asyncio lives beside router.py."""
