"""Finds the entries whose signs match an event. Signs are parsed, compiled and prefiltered here."""
