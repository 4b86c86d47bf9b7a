"""Work that goes on after its request was answered."""
