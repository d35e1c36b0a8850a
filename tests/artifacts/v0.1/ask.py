def right_and_down(observation):
    return 2 if observation % 4 < 2 else 1
