"""The web as a source of research: search back-ends, and a fetcher that reaches public addresses alone."""
