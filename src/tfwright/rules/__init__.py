"""What a TensorFlow tree declares: its repository rules, read as text."""
