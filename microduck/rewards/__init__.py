"""What a duck is rewarded for: the registered terms, and the features that they read.

Weights live in task rows only; a term gets features and parameters and returns one value per duck.
"""

from microduck.rewards import terms, walking_terms  # noqa: F401  (to register them)
from microduck.rewards.features import COMMAND_THRESHOLD, MIN_UPRIGHT, Features
from microduck.rewards.registry import REWARD_TERMS, RewardRegistry, RewardTerm, register_reward

__all__ = [
    "COMMAND_THRESHOLD",
    "MIN_UPRIGHT",
    "REWARD_TERMS",
    "Features",
    "RewardRegistry",
    "RewardTerm",
    "register_reward",
]
