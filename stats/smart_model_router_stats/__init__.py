"""Statistics of each target: estimators, the in-memory book, and the stores behind it."""
