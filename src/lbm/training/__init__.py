"""What data adds."""
