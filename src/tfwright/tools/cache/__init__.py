"""The build cache: a loopback proxy that hands Bazel only what it has verified."""
