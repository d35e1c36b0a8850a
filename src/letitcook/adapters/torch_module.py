"""A torch.nn.Module that gives each action a value or a logit, as a policy: the action with the largest one."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from letitcook.adapters.space_checks import known_actions
from letitcook.errors import NotFiniteError, SpaceError


class ModulePolicy:
    """The largest output of a module.

    An observation becomes a float32 tensor with a batch axis, on the module's own device; the module is put in its
    evaluation mode and no gradient is kept. Without an observation space, an observation with an even number of axes
    (rows of vectors, stacks of images) is a batch.
    """

    batched = True

    def __init__(
        self,
        module: Any,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Discrete | None = None,
        wait: Any = None,
    ) -> None:
        self.module = module
        self.action_space = action_space
        known = [] if action_space is None else known_actions(action_space, wait)
        self._counts = [int(space.n) for space in known if isinstance(space, spaces.Discrete)]
        self._axes = None if observation_space is None else len(observation_space.shape or ())

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the best action at an observation, or an array of them for a batch."""
        rows, single = self._rows(observation)
        outputs = self._outputs(rows)
        if not np.isfinite(outputs).all():
            raise NotFiniteError(f"the module answered {outputs.tolist()}, which is not finite, to {observation!r}")
        actions = outputs.argmax(axis=1)
        if self.action_space is not None:
            if outputs.shape[1] not in self._counts:
                raise SpaceError(
                    f"the module is a policy for another action space: it gives {outputs.shape[1]} values, and this "
                    f"environment has {self.action_space.n} actions"
                )
            actions = actions + int(self.action_space.start)
        return (int(actions[0]) if single else actions), None

    def _rows(self, observation: Any) -> tuple[np.ndarray[Any, np.dtype[np.float32]], bool]:
        """Return the observations with a batch axis, and whether there was one alone."""
        try:
            x = np.asarray(observation, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise SpaceError(
                f"the observation {observation!r} is not an array of numbers, which a torch.nn.Module takes; "
                "give a function observation -> action that calls the module"
            ) from error
        single = x.ndim % 2 == 1 or x.ndim == 0 if self._axes is None else x.ndim == self._axes
        # A number alone is a vector of one.
        rows = x[None] if single else x
        return (rows[:, None] if rows.ndim == 1 else rows), single

    def _outputs(self, rows: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[Any]]:
        import torch

        tensor = next(iter(self.module.parameters()), None)
        tensor = next(iter(self.module.buffers()), None) if tensor is None else tensor
        self.module.eval()
        with torch.no_grad():
            answer = self.module(torch.as_tensor(rows, device="cpu" if tensor is None else tensor.device))
        if not isinstance(answer, torch.Tensor) or answer.ndim != 2 or len(answer) != len(rows):
            shape = tuple(answer.shape) if isinstance(answer, torch.Tensor) else type(answer).__name__
            raise SpaceError(
                f"the module answered {shape} to a batch of {len(rows)} observations; a tensor (batch, actions) of "
                "values or logits is needed. Else give a function observation -> action that calls the module"
            )
        return np.asarray(answer.float().cpu().numpy())
