"""Lock files."""
