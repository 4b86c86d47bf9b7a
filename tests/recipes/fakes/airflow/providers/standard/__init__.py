"""Airflow's provider of standard operators and hooks."""
