"""A model's networks as ONNX files, for other runtimes and languages. It needs onnx, and no torch.

    value.onnx     "slots" int64 (batch, slots) -> "win" float32 (batch,)
    policy.onnx    "inputs" float32 (batch, inputs) -> "logits" float32 (batch, actions)

Inputs and outputs are those of docs/formats.md: an ending's slots with the probability to win, and
an arranged observation and mask with a logit for each action of the arranged table, legal or not.
The weights are those of the safetensors files, in float32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.agents.models import Model
from skipbo_env.agents.network import VERSION, Network, num_slots
from skipbo_env.agents.policy import POLICY_VERSION, Policy

OPSET = 17
IR_VERSION = 8  # of the file; what runtimes of opset 17 read


def _nodes(first: str) -> list[tuple[str, list[str], str]]:
    """The layers that both networks end with, from the first one's product: (operator, inputs,
    output).
    """
    return [
        ("Add", [first, "b1"], "sum1"),
        ("Relu", ["sum1"], "hidden"),
        ("MatMul", ["hidden", "w2"], "product2"),
        ("Add", ["product2", "b2"], "sum2"),
        ("Relu", ["sum2"], "hidden2"),
        ("MatMul", ["hidden2", "w3"], "product3"),
    ]


def value_graph(network: Network, slots: int) -> Any:
    """The value network as an ONNX graph."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Gather", ["w1", "slots"], ["rows"], axis=0),
        helper.make_node("ReduceSum", ["rows", "axis"], ["product1"], keepdims=0),
        *(helper.make_node(kind, given, [out]) for kind, given, out in _nodes("product1")),
        helper.make_node("Add", ["product3", "b3"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["win"]),
    ]
    taken = helper.make_tensor_value_info("slots", TensorProto.INT64, ["batch", slots])
    given = helper.make_tensor_value_info("win", TensorProto.FLOAT, ["batch"])
    weights = {**network._asdict(), "axis": np.array([1], np.int64)}
    return helper.make_graph(nodes, "value", [taken], [given], _tensors(weights))


def policy_graph(policy: Policy) -> Any:
    """The policy network as an ONNX graph."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMul", ["inputs", "w1"], ["product1"]),
        *(helper.make_node(kind, given, [out]) for kind, given, out in _nodes("product1")),
        helper.make_node("Add", ["product3", "b3"], ["logits"]),
    ]
    inputs, actions = policy.w1.shape[0], policy.b3.size
    taken = helper.make_tensor_value_info("inputs", TensorProto.FLOAT, ["batch", inputs])
    given = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", actions])
    return helper.make_graph(nodes, "policy", [taken], [given], _tensors(policy._asdict()))


def _tensors(arrays: dict[str, NDArray[Any]]) -> list[Any]:
    from onnx import numpy_helper

    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def write_onnx(model: Model, folder: Path) -> list[Path]:
    """Write an ONNX file for each network of a model, and say which.

    Args:
        model: the model.
        folder: where; made if it is not there. Files of these names are written over.

    Raises:
        ImportError: onnx is not installed.
    """
    import onnx
    from onnx import helper

    graphs: dict[str, tuple[Any, int, str]] = {}
    if model.value is not None:
        slots = num_slots(model.players, model.boards)
        graphs["value.onnx"] = value_graph(model.value, slots), VERSION, model.sha256
    if model.policy is not None:
        graphs["policy.onnx"] = policy_graph(model.policy), POLICY_VERSION, model.policy_sha256
    folder.mkdir(parents=True, exist_ok=True)
    for name, (graph, features, sha256) in graphs.items():
        file = helper.make_model(
            graph,
            producer_name="skipbo_env",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        told = {
            "format": "skipbo-model",
            "model": model.name,
            "features": features,
            "players": model.players,
            "teams": model.teams,
            "sha256": sha256,
        }
        helper.set_model_props(file, {key: str(value) for key, value in told.items()})
        onnx.checker.check_model(file, full_check=True)
        (folder / name).write_bytes(file.SerializeToString())
    return [folder / name for name in graphs]
