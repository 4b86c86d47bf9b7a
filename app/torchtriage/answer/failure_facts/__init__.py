"""What is known of one failure, for sentences and people: a root cause and its run in, facts with lines out."""
