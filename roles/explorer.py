"""The explorer: structural changes, high variance, few variants."""

from protocol.messages import Role
from roles.taste import Taste
from roles.techniques.card import Tier

EXPLORER = Taste(
    role=Role.EXPLORER,
    tiers=frozenset({Tier.ALGORITHM, Tier.DATA_MOVEMENT, Tier.REGISTERS, Tier.VECTOR_MATH, Tier.FUSION}),
    temperature=0.1,
    variants=4,
)
