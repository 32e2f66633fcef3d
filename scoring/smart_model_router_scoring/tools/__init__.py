"""Suggests tools and capabilities: search, next step, match, discovery, and the thresholds and weights that learn.

The formulas are those of the founding record 038; docs/how-to/tools-and-recall.md shows them at work.
"""
