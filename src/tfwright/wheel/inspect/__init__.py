"""What one wheel is, read from its bytes alone."""
