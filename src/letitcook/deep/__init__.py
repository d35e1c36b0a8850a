"""The deep learner: MLP kernels, replay of durative transitions, LDQN."""
