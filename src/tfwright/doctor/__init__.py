"""What a host lacks for a recipe."""
