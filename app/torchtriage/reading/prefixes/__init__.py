"""Recognizes and strips what comes before a line's own text (rank, host, time): known and learned forms."""
