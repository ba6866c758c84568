"""Learning to play Skip-Bo with PyTorch: value learning by TD(lambda) self-play, checkpoints,
evaluation, export.
"""
