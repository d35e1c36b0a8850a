"""A skrl agent (PyTorch; skrl 1.4 and 2) as a policy.

The agent's own model is queried, through the agent's own preprocessor, because `agent.act` explores: DQN draws random
actions, TD3 adds noise, PPO samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.errors import SettingError


class AgentPolicy:
    """What a skrl agent has learned, without its exploration.

    The best of the values or of the probabilities for discrete actions, and the mean of a Gaussian, clipped to the
    action space, for continuous ones. `deterministic=False` samples from a policy that is a distribution.
    """

    batched = True

    def __init__(self, agent: Any) -> None:
        name = type(agent).__name__
        if not hasattr(agent, "device") or any(".jax" in c.__module__ for c in type(agent).__mro__):
            raise SettingError(f"{name} is not a PyTorch agent of skrl; give a function observation -> action")
        values, policy = getattr(agent, "q_network", None), getattr(agent, "policy", None)
        self.agent = agent
        self.model: Any = policy if values is None else values
        self.role = "policy" if values is None else "q_network"
        if self.model is None:
            raise SettingError(f"the agent {name} of skrl has neither a policy nor a q_network; nothing can be queried")
        if self.model.get_specification().get("rnn") or any(
            c.__name__ == "TabularMixin" for c in type(self.model).__mro__
        ):
            raise SettingError(
                f"the model {type(self.model).__name__} of skrl is recurrent or a table, which cannot be queried "
                "without its agent; give a function observation -> action, or an object with predict and a state"
            )
        self.observation_space: spaces.Space[Any] = agent.observation_space
        self.action_space: spaces.Space[Any] = agent.action_space

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the action at an observation, or an array of actions for a batch."""
        import torch
        from skrl.utils.spaces.torch import flatten_tensorized_space, tensorize_space

        space = self.observation_space
        x = observation if isinstance(space, spaces.Dict | spaces.Tuple) else np.asarray(observation)
        rows = flatten_tensorized_space(tensorize_space(space, x, device=self.agent.device))
        self.model.eval()
        with torch.no_grad():
            answers = self._answers(self._inputs(rows), deterministic).cpu().numpy()
        actions = answers.reshape(-1, *(self.action_space.shape or ()))
        if isinstance(self.action_space, spaces.Box):
            actions = np.clip(actions, self.action_space.low, self.action_space.high)
        return (actions[0] if _single(space, x) else actions), None

    def _inputs(self, rows: Any) -> dict[str, Any]:
        """Return what a model takes: skrl 2 tells observations from states, skrl 1 does not."""
        if hasattr(self.agent, "_observation_preprocessor"):
            return {"observations": self.agent._observation_preprocessor(rows), "states": None}
        return {"states": self.agent._state_preprocessor(rows)}

    def _answers(self, inputs: dict[str, Any], deterministic: bool) -> Any:
        """Return the actions as a tensor."""
        import torch

        answer = self.model.act(inputs, role=self.role)  # (actions, outputs), in skrl 1 with the log between
        actions, outputs = answer[0], answer[-1]
        if self.role == "q_network":
            return actions.argmax(dim=1)
        if not deterministic:
            return actions
        if "mean_actions" in outputs:
            return outputs["mean_actions"]
        if "net_output" in outputs:  # values of categories: one set, or one for each part of the action
            sizes = getattr(self.action_space, "nvec", None)
            net = outputs["net_output"]
            parts = [net] if sizes is None else torch.split(net, sizes.ravel().tolist(), dim=-1)
            return torch.stack([part.argmax(dim=-1) for part in parts], dim=-1)
        return actions


def _single(space: spaces.Space[Any], observation: Any) -> bool:
    """Return whether there is one observation alone; dictionaries and tuples are told by their first part."""
    if isinstance(space, spaces.Dict):
        key = next(iter(space.spaces))
        return _single(space.spaces[key], observation[key])
    if isinstance(space, spaces.Tuple):
        return _single(space.spaces[0], observation[0])
    return np.ndim(observation) == len(space.shape or ())
