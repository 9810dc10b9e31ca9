"""What tfwright writes into a wheel and beside it, and the wheel's canonical bytes."""
