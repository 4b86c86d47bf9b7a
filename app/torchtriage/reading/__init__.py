"""Reading a run's log: sources, blocks of bytes, the scan, windows around hits, lines without their prefixes."""
