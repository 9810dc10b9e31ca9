"""The target Python: its venvs and packages."""
