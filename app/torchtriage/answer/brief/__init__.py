"""The brief: what a person or a language model needs to judge a log, within a given number of tokens."""
