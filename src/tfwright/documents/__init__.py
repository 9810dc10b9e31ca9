"""What people write: the recipe, the host file, and how a fault in one is reported."""
