"""Playing policies: episodes, what a wrapper saves, other work inside waits."""
