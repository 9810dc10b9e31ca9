"""What TensorFlow's ./configure asks and writes, release by release."""
