"""The words of torchtriage as frozen dataclasses; standard library only."""
