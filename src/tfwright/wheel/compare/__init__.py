"""What differs between two wheels."""
