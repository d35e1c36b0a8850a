"""What drives the deep learner through environments."""
