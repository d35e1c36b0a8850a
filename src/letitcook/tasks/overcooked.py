"""The kitchen of `letitcook.tasks.cook` on the published overcooked-ai package, to check the one against the other.

`OvercookedKitchen` answers the same questions as `CookEnv` (`initial_states`, `outcomes`), in the same states, but has
overcooked-ai carry out the step. It needs the extra: `pip install "letitcook[overcooked]"`, best in an environment of
its own, as the package brings `pygame`, which shares a folder with MiniGrid's `pygame-ce`.

overcooked-ai 1.1.0 differs from the paper's kitchen in two rules, and `_gridworld` sets both right:

- a full pot has to be switched on by hand; with the `old_dynamics` of other versions it begins by itself;
- things can be put on counters; here interacting with a counter is the same as staying.
"""

from __future__ import annotations

from typing import Any

from letitcook.errors import LetItCookError
from letitcook.tasks.kitchen import HELD, LAYOUT, NOTHING, ONIONS_PER_SOUP, SOUP, START, Outcome, State


class OvercookedKitchen:
    """The kitchen with overcooked-ai's dynamics, in the states of `letitcook.tasks.cook`."""

    def __init__(self, cook_time: int = 18, soups: int = 1) -> None:
        """Set up a kitchen where a soup takes `cook_time` steps and `soups` of them are due."""
        self.cook_time = cook_time
        self.soups = soups
        self._gridworld = _gridworld(cook_time)

    def initial_states(self) -> tuple[tuple[float, State], ...]:
        """Return the starts as pairs of probability and state, from overcooked-ai's own start."""
        return ((1.0, self._from_overcooked(self._gridworld.get_standard_start_state(), delivered=0)),)

    def outcomes(self, state: State, action: int) -> tuple[Outcome, ...]:
        """Return what `action` can lead to from `state`: probability, next state, reward, terminated."""
        from overcooked_ai_py.mdp.actions import Action
        from overcooked_ai_py.mdp.overcooked_mdp import Recipe

        # Recipes are global to the process: another kitchen's may stand.
        Recipe.configure(self._gridworld.recipe_config)
        joint_action = (Action.INDEX_TO_ACTION[action],)
        after, infos = self._gridworld.get_state_transition(self._to_overcooked(state), joint_action)
        delivered = state.delivered + infos["event_infos"]["soup_delivery"][0]
        return ((1.0, self._from_overcooked(after, delivered), -1.0, delivered == self.soups),)

    def _to_overcooked(self, state: State) -> Any:
        """Translate a state of ours; overcooked-ai does not count soups delivered."""
        from overcooked_ai_py.mdp.actions import Direction
        from overcooked_ai_py.mdp.overcooked_mdp import ObjectState, OvercookedState, PlayerState, SoupState

        cell, pot = (state.x, state.y), self._gridworld.get_pot_locations()[0]
        if state.held == NOTHING:
            held = None
        elif state.held == SOUP:
            held = SoupState.get_soup(cell, num_onions=ONIONS_PER_SOUP, finished=True)
        else:
            held = ObjectState(HELD[state.held], cell)
        objects = {}
        if state.onions:
            tick = self.cook_time - state.left if state.onions == ONIONS_PER_SOUP else -1
            objects[pot] = SoupState.get_soup(pot, num_onions=state.onions, cooking_tick=tick)
        player = PlayerState(cell, Direction.INDEX_TO_DIRECTION[state.facing], held)
        return OvercookedState([player], objects, all_orders=self._gridworld.start_all_orders)

    def _from_overcooked(self, state: Any, delivered: int) -> State:
        """Translate a state of overcooked-ai's."""
        from overcooked_ai_py.mdp.actions import Direction

        (player,) = state.players
        held = player.held_object.name if player.has_object() else "nothing"
        pot = self._gridworld.get_pot_locations()[0]
        elsewhere = set(state.objects) - {pot}
        if elsewhere:
            raise RuntimeError(f"overcooked-ai put something down at {elsewhere}")
        soup = state.objects.get(pot)
        x, y = player.position
        return State(
            x,
            y,
            facing=Direction.DIRECTION_TO_INDEX[player.orientation],
            held=HELD.index(held),
            onions=len(soup.ingredients) if soup else 0,
            left=soup.cook_time_remaining if soup and soup.is_cooking else 0,
            delivered=delivered,
        )


def _gridworld(cook_time: int) -> Any:
    """Return overcooked-ai's grid world of the kitchen, with the two rules of the module's description."""
    try:
        from overcooked_ai_py.mdp.actions import Action
        from overcooked_ai_py.mdp.overcooked_mdp import OvercookedGridworld
    except ImportError as missing:
        raise LetItCookError(
            f"this kitchen needs the overcooked-ai package ({missing}); "
            'install it with: pip install "letitcook[overcooked]"'
        ) from missing

    class Gridworld(OvercookedGridworld):  # type: ignore[misc]
        def step_environment_effects(self, state: Any) -> None:
            """Switch a full pot on before time passes."""
            for thing in state.objects.values():
                if thing.name == "soup" and thing.is_idle and thing.is_full:
                    thing.begin_cooking()
            super().step_environment_effects(state)

        def soup_to_be_cooked_at_location(self, state: Any, pos: Any) -> bool:
            """Leave no pot to be switched on by hand."""
            return False

        def resolve_interacts(self, new_state: Any, joint_action: Any, events_infos: Any) -> Any:
            """Interact with anything but a counter."""
            (player,) = new_state.players
            ahead = Action.move_in_direction(player.position, player.orientation)
            if self.get_terrain_type_at_pos(ahead) == "X":
                joint_action = (Action.STAY,)
            return super().resolve_interacts(new_state, joint_action, events_infos)

    return Gridworld(
        terrain=[list(row) for row in LAYOUT],
        start_player_positions=[(START.x, START.y)],
        start_all_orders=[{"ingredients": ["onion"] * ONIONS_PER_SOUP}],
        cook_time=cook_time,
    )
