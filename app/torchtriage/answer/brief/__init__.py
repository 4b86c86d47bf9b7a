"""The brief: what a person or a language model needs in order to judge a log, in a number of tokens."""
