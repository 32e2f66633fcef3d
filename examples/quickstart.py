"""The smallest use: ask, and see who answered."""
