"""The providers: how each is reached, what its answers mean, and scripted ones for tests."""
