"""From a root cause to a verdict: where it happened, what the knowledge base says about it, and what to do."""
