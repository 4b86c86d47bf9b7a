"""Readers for what tools report about GPUs, hosts, links and jobs. There is one module per tool. Each turns text into
lines that signs can match."""
