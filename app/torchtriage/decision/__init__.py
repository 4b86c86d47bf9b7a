"""Whether a failed job is started again: a verdict, earlier attempts and a policy in, a decision out."""
