"""What precedes a line's own text (rank, host, time): known forms and learned ones, and how they are stripped."""
