"""New recipes."""
