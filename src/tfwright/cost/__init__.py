"""What a build took."""
