"""As much of Airflow 3.3 as the recipe touches, and as strict; the real one where AIRFLOW_PYTHON names a Python that has it."""
