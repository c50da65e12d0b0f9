"""What people see: commands and pictures."""
