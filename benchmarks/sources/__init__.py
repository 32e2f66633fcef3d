"""The small studies behind the rules for sources: dates of pages, tiers of addresses, and the window of recency."""
