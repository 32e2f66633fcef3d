"""Serves one request with asyncio: the only package beside router.py that does."""
