"""The client. It is one file that also runs without the rest of torchtriage."""
