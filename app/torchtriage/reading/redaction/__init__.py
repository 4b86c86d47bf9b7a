"""Takes secrets out of text that is shown or kept."""
