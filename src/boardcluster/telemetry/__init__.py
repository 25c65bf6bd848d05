"""Watch every node during a run: the agent, its collector, power meters."""
