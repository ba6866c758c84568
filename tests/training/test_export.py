"""`skipbo export`: ONNX files say what torch says, a model folder takes in another's network."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from skipbo_env.agents import ModelError, load_model, make_agent
from skipbo_env.agents.policy import ORDER, arrange_rows, num_inputs
from skipbo_env.cli import run
from skipbo_env.rules import Rules
from tests.training.test_ppo import TAUGHT
from tests.training.test_td import TINY
from training import ppo, td
from training.cli import export

MISSING = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]


def onnxruntime() -> Any:
    if MISSING:
        print(f"skipped: {' and '.join(MISSING)} not installed")
        pytest.skip(f"{' and '.join(MISSING)} not installed")
    import onnxruntime

    return onnxruntime


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def value_model(folder: Path) -> td.Learner:
    learner = td.Learner(replace(TINY, hidden=32, warm_start_games=30))
    torch.nn.init.normal_(learner.network.rows, std=0.3)
    torch.nn.init.normal_(learner.network.factors, std=0.3)
    learner.average.load_state_dict(learner.network.state_dict())
    learner.export(folder, {"games": 5, "seconds": 1.0})
    return learner


def policy_model(folder: Path, **changes: Any) -> ppo.Learner:
    learner = ppo.Learner(replace(TAUGHT, games=125, **changes))
    torch.nn.init.normal_(learner.network.policy.weight, std=0.3)
    learner.export(folder, {"games": 7, "seconds": 1.0})
    return learner


def test_onnx_value_network_agrees_with_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 1,000 endings of real games, within 1e-4."""
    runtime = onnxruntime()
    learner = value_model(tmp_path / "mine")
    out = tmp_path / "out"
    words = [str(tmp_path / "mine"), "--to", "onnx", "--out", str(out)]
    assert run(export, "export", words) == 0
    assert capsys.readouterr().out.split() == [str(out / "value.onnx")]
    assert not (out / "policy.onnx").exists()
    slots = learner.player.play(learner.network.compiled(), 0).slots[:1000]
    assert len(slots) == 1000
    session = runtime.InferenceSession(str(out / "value.onnx"))
    (ours,) = session.run(["win"], {"slots": slots.astype(np.int64)})
    with torch.no_grad():
        theirs = torch.sigmoid(learner.network(torch.from_numpy(slots).int())).numpy()
    assert ours.shape == (1000,)
    assert np.abs(ours - theirs).max() < 1e-4
    assert theirs.std() > 0.05
    told = session.get_modelmeta().custom_metadata_map
    assert told["sha256"] == load_model(tmp_path / "mine").sha256
    assert told["model"] == "mine"


@pytest.mark.parametrize("table", [{}, {"players": 4, "teams": 2}])
def test_onnx_policy_agrees_with_torch(tmp_path: Path, table: dict[str, int]) -> None:
    """On 1,000 positions of real games, within 1e-4."""
    runtime = onnxruntime()
    learner = policy_model(tmp_path / "mine", **table)
    words = [str(tmp_path / "mine"), "--to", "onnx", "--out", str(tmp_path)]
    assert run(export, "export", words) == 0
    session = runtime.InferenceSession(str(tmp_path / "policy.onnx"))
    orders = np.zeros((125, ORDER), np.int64)
    inputs = np.zeros((125, num_inputs(learner.rules)), np.float32)
    spread = []
    for _ in range(8):
        masks = learner.infos["action_mask"]
        arrange_rows(learner.env.states, learner.observations, masks, orders, inputs)
        (ours,) = session.run(["logits"], {"inputs": inputs})
        with torch.no_grad():
            theirs = learner.network(torch.from_numpy(inputs))[0].numpy()
        assert np.abs(ours - theirs).max() < 1e-4
        spread.append(theirs.std(axis=0).mean())
        for _ in range(5):
            actions = learner.env.sample_actions()
            learner.observations, *_, learner.infos = learner.env.step(actions)
    assert np.mean(spread) > 0.05


def test_a_folder_takes_in_the_network_that_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value_model(tmp_path / "both")
    policy_model(tmp_path / "policy")
    before = (tmp_path / "both/value.safetensors").read_bytes()
    card = (tmp_path / "both/README.md").read_text()
    results = "## Results\n\nfigures\n"
    (tmp_path / "both/README.md").write_text(card + results)
    words = [str(tmp_path / "policy"), "--out", str(tmp_path / "both")]
    assert run(export, "export", words) == 0
    both, alone = load_model(tmp_path / "both"), load_model(tmp_path / "policy")
    assert (tmp_path / "both/value.safetensors").read_bytes() == before
    assert both.value is not None
    assert both.policy_sha256 == alone.policy_sha256
    assert both.config["policy"] == alone.config["policy"]
    text = (tmp_path / "both/README.md").read_text()
    assert text.startswith(card.rstrip())
    assert text.index("## Policy") < text.index("--algo ppo") < text.index("## Results")
    assert text.endswith(results)
    assert make_agent(f"policy:{tmp_path / 'both'}").plays(Rules())
    # A second one is refused, and so is one for another table; nothing changes.
    policy_model(tmp_path / "three", players=3)
    kept = {file.name: file.read_bytes() for file in (tmp_path / "both").iterdir()}
    capsys.readouterr()
    for other, word in (("policy", "is there already"), ("three", "another table")):
        words[0] = str(tmp_path / other)
        assert run(export, "export", words) == 2
        assert word in capsys.readouterr().err
    assert kept == {file.name: file.read_bytes() for file in (tmp_path / "both").iterdir()}


def test_a_model_is_copied_as_it_is(tmp_path: Path) -> None:
    policy_model(tmp_path / "mine")
    words = [str(tmp_path / "mine"), "--out", str(tmp_path / "new/copy")]
    assert run(export, "export", words) == 0
    for file in ("config.json", "policy.safetensors", "README.md"):
        assert (tmp_path / "new/copy" / file).read_bytes() == (
            tmp_path / "mine" / file
        ).read_bytes()
    assert json.loads((tmp_path / "new/copy/config.json").read_text())["players"] == 2


def test_bad_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(export, "export", ["nobody", "--out", str(tmp_path / "out")]) == 2
    assert "nobody" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    policy_model(tmp_path / "mine")
    assert run(export, "export", [str(tmp_path / "mine"), "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
    (tmp_path / "mine/policy.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match=r"policy\.safetensors"):
        export(str(tmp_path / "mine"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
