"""Facts about one failure, for sentences and for people. Input: a root cause and its run. Output: facts with their log
lines."""
