"""Pong: win one point against a scripted opponent as fast as you can.

Rules. Gymnax's geometry (Lange 2022), with one change, the agent's contact plane at x = 0. The field is 40 wide and 30
high; paddles are 2 high to either side of their centre, centres stay in [2, 27]; the ball moves 1 a step in x and at
most 3 in y. Actions: `up`, `down`, `wait`, and `hit`, which rests and returns the ball where it touches. One step:

1. sticky actions: with probability 1/4 the action executed last is executed again instead (inside waits too);
2. the agent's paddle moves by 1;
3. the opponent's moves by -1 if that brings it strictly nearer to the ball than +1 would, else by +1: it never rests;
4. the ball moves, and the walls above and below reflect it;
5. the agent returns it at x ≤ 0 if it hits with the paddle there; else the opponent returns it at x ≥ 39; the paddle's
   edge gives it spin;
6. at x ≥ 40 the point is won and the episode ends; at x < 0 it is lost and the ball is served again from the middle.

An episode is truncated after 1000 steps. Reward: -1 a step. The fastest win takes 94 steps: 19 (serve to the opponent)
+ 37 (to the agent) + 38 (a winning return). The layout of the paper's Pong is not published; this one is a calibrated
stand-in with its 94 steps.

Observation: both paddles, the ball, where it was a step before, and its velocity, scaled to about ±1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.core.jit import compiled, random_float
from letitcook.tasks.simulated_env import Canvas, Dynamics, Observation, Random, SimulatedEnv, State
from letitcook.tasks.task import Task

UP, DOWN, WAIT, HIT = 0, 1, 2, 3

WIDTH, HEIGHT = 40.0, 30.0
HALF_PADDLE = 2.0
TOP, BOTTOM = 2.0, 27.0
TOP_SPIN = 3.0
STICKY = 0.25
AGENT, OPPONENT, Y, X, LAST_Y, LAST_X, VY, VX, LAST_ACTION = range(9)
"""Places in the state."""
SIZE = 9


@compiled
def serve(state: State) -> None:
    """Put the ball in the middle, moving towards the opponent."""
    state[Y], state[X] = 15.0, 20.0
    state[LAST_Y], state[LAST_X] = 15.0, 20.0
    state[VY], state[VX] = 0.0, 1.0


@compiled
def reset(state: State, rng: Random) -> None:
    """Both paddles in the middle, the ball served; every episode starts the same."""
    state[AGENT], state[OPPONENT] = 15.0, 15.0
    state[LAST_ACTION] = WAIT
    serve(state)


@compiled
def step(state: State, action: int, rng: Random) -> tuple[float, bool]:
    """Choose what is executed, the action or the last one again, and move on."""
    executed = int(state[LAST_ACTION]) if random_float(rng) < STICKY else action
    return -1.0, move(state, executed)


@compiled
def move(state: State, action: int) -> bool:
    """Execute `action` for one step; returns whether the point is won."""
    state[LAST_ACTION] = action
    if action == UP:
        state[AGENT] = max(TOP, state[AGENT] - 1)
    elif action == DOWN:
        state[AGENT] = min(BOTTOM, state[AGENT] + 1)
    above, below = max(TOP, state[OPPONENT] - 1), min(BOTTOM, state[OPPONENT] + 1)
    state[OPPONENT] = above if abs(state[Y] - above) < abs(state[Y] - below) else below

    state[LAST_Y], state[LAST_X] = state[Y], state[X]
    state[Y] += state[VY]
    state[X] += state[VX]
    if state[Y] < 0:
        state[Y] = -state[Y]
        state[VY] = -state[VY]
    if state[Y] >= HEIGHT:
        state[Y] = 2 * (HEIGHT - 1) - state[Y]
        state[VY] = -state[VY]

    if state[X] <= 0 and action == HIT and abs(state[Y] - state[AGENT]) <= HALF_PADDLE:
        bounce(state, state[AGENT], 2.0)
    elif state[X] >= WIDTH - 1 and abs(state[Y] - state[OPPONENT]) < HALF_PADDLE + 1:
        bounce(state, state[OPPONENT], 2 * (WIDTH - 2))

    won = bool(state[X] >= WIDTH)
    if state[X] < 0:
        serve(state)
    return won


@compiled
def bounce(state: State, paddle: float, reflected: float) -> None:
    """Return the ball: x ← reflected - x, and spin by where the paddle was touched."""
    state[X] = reflected - state[X]
    state[VX] = -state[VX]
    state[VY] = min(max(state[VY] + (state[Y] - paddle) / 2, -TOP_SPIN), TOP_SPIN)


@compiled
def observe(state: State, out: Observation) -> None:
    """Scale paddles, ball, last ball and velocity."""
    for i in (AGENT, OPPONENT, Y, LAST_Y):
        out[i] = (state[i] - 15) / 15
    out[X] = (state[X] - 20) / 20
    out[LAST_X] = (state[LAST_X] - 20) / 20
    out[VY] = state[VY] / 1.5
    out[VX] = state[VX]


def draw(state: State) -> Any:
    """Draw field, paddles and ball with the way it came, 504 x 360."""
    canvas = Canvas(WIDTH + 2, HEIGHT, scale=12, background="#1d2733")
    for y in range(0, int(HEIGHT), 2):
        canvas.box(20.9, y + 0.5, 21.1, y + 1.5, "#3b4a5a")
    for x, paddle, colour in ((0.2, state[AGENT], "#5fb3a1"), (WIDTH + 1.0, state[OPPONENT], "#d9793b")):
        canvas.box(x, paddle - HALF_PADDLE, x + 0.8, paddle + HALF_PADDLE, colour, radius=0.3)
    ball, before = (state[X] + 1, state[Y]), (state[LAST_X] + 1, state[LAST_Y])
    canvas.line([before, ball], width=0.3, colour="#6b7785")
    canvas.disc(*ball, radius=0.5, colour="#f2f2ee")
    return canvas.pixels()


class PongEnv(SimulatedEnv):
    """One point of Pong with sticky actions."""

    action_names = ("up", "down", "wait", "hit")

    def __init__(self, render_mode: str | None = None) -> None:
        high = np.array([1, 1, 1, 1, 1, 1, 2, 1], dtype=np.float32)
        space = spaces.Box(-high, high, dtype=np.float32)
        super().__init__(Dynamics(SIZE, reset, step, observe), space, draw, render_mode)


TASK = Task(
    name="pong",
    env_id="letitcook/Pong-v0",
    entry_point="letitcook.tasks.pong:PongEnv",
    summary="Win one point against a scripted opponent.",
    actions=PongEnv.action_names,
    wait=WAIT,
    durations=(2, 4, 8, 16, 32, 64, 128),
    horizon=1000,
    finite=False,
)
