"""Entries against text: signs are parsed, compiled and prefiltered here; an event in, the entries it shows out."""
