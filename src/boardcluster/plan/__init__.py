"""How long, how many joules, how much on disk: predicted from runs and published tables. Pure."""
