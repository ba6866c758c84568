"""Skip-Bo as other libraries take it, one module a library; docs/libraries/ shows each in use.

    sb3         `SkipBoVecEnv`, for Stable-Baselines3 and MaskablePPO of sb3-contrib
    openspiel   the game "python_skipbo"
    torchrl     `SkipBoTorchRLEnv` and `masked_actor`
    tianshou    `SkipBoTianshouEnv`, for the DQN family
    rllib       `SkipBoMultiAgentEnv` and `masked_ppo_config`

AgileRL and code in CleanRL's way take the vector environment as it is.

Importing this package imports none of them; each module needs its library, from the extra
`compat` or by hand, see its page.
"""
