"""The finite engine: tables of any finite environment, its exact optimum, and Algorithm 1."""
