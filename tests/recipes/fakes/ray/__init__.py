"""As much of Ray 2.60 as the recipe touches; the real one where RAY_PYTHON names a Python that has it."""
