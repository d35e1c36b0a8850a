"""What people look at: comparisons, tables, figures."""
