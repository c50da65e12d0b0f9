"""What was measured: the paper's figures and table, one module each, and the report."""
