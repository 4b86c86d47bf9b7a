"""From events and a knowledge base to a verdict."""
