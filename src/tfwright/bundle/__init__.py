"""One file with everything that a build needs."""
