"""Work that continues after its request was answered."""
