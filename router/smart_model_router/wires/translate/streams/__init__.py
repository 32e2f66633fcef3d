"""Stream events translated: fed with the upstream events, they return those of the dialect asked."""
