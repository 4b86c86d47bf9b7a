"""What tools report of GPUs, hosts, links and jobs beside the log: a module for each, texts in, lines for signs out."""
