"""The only driver: plans trials, runs them in seeded random order, and stores what is proved."""
