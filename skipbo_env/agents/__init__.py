"""Everything that picks a move: rule-based kernels, the value network with its turn search, and the
names of agents.
"""

from skipbo_env.agents.agent import (
    Agent,
    AgentError,
    BestAgent,
    LevelAgent,
    PolicyAgent,
    RuleAgent,
    SearchAgent,
    TurnAgent,
    list_agents,
    make_agent,
)
from skipbo_env.agents.models import (
    Model,
    ModelError,
    ending_slots,
    list_models,
    load_model,
)

__all__ = [
    "Agent",
    "AgentError",
    "BestAgent",
    "LevelAgent",
    "Model",
    "ModelError",
    "PolicyAgent",
    "RuleAgent",
    "SearchAgent",
    "TurnAgent",
    "ending_slots",
    "list_agents",
    "list_models",
    "load_model",
    "make_agent",
]
