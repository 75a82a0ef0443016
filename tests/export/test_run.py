import dataclasses

import pytest

from export.run import export_run
from firmware_bridge.skills.bundle import load_bundle
from hardware.errors import ConfigError, TrainingError
from microduck.learning.config import TrainConfig
from microduck.learning.run_folder import RunFolder
from microduck.learning.train import Trainer

SMALL = TrainConfig(num_envs=16, steps=4, transitions=64, minibatches=1, epochs=1, threads=1)


def train(folder, config=SMALL):
    Trainer.start(RunFolder(folder), config).train(lambda row: None)


def test_a_run_becomes_a_bundle_with_its_provenance(tmp_path):
    train(tmp_path / "run")
    manifest = export_run(tmp_path / "run", tmp_path / "bundle")
    assert manifest["training"]["config"]["num_envs"] == 16
    assert manifest["training"]["transitions"] == 64
    assert manifest["evaluation"] == {}  # it has no report
    assert list(load_bundle(tmp_path / "bundle").skills) == ["walk"]


def test_a_damaged_report_is_refused_before_anything_is_written(tmp_path):
    train(tmp_path / "run")
    (tmp_path / "run" / "report.json").write_text("{")
    with pytest.raises(ConfigError, match=r"report\.json is not valid JSON"):
        export_run(tmp_path / "run", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_run_on_the_trunks_velocity_becomes_a_bundle_that_asks_for_it(tmp_path):
    train(tmp_path / "run", dataclasses.replace(SMALL, layout="state"))
    export_run(tmp_path / "run", tmp_path / "bundle")
    assert load_bundle(tmp_path / "bundle").layout == "state"


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="is no training run"):
        export_run(tmp_path, tmp_path / "bundle")
