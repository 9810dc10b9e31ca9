"""What tfwright writes into a wheel and next to it, and the wheel's canonical bytes."""
