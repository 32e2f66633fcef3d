"""Translation between dialects, pure: requests, whole answers and stream events, with every loss told."""
