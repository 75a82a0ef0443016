"""Which duck is simulated: the built-in one unless another is asked for, and then no third."""

import pytest

from hardware.errors import ConfigError, DuckError, SceneError
from microduck.scene import BUILT_IN, resolve, resolve_scene
from microduck.scene.download import COMMIT, MODEL_FOLDER, digest

CHECKOUT = f"microduck_rl-{COMMIT}"


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """No variable, no network, and a home of its own."""
    monkeypatch.delenv("MICRODUCK_RL_ROOT", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(resolve, "SOURCE", resolve.Source(url="https://127.0.0.1:1/none.zip"))


def model_in(folder):
    folder.mkdir(parents=True)
    (folder / "scene_walk.xml").write_text("<mujoco/>")
    return (folder / "scene_walk.xml").resolve()


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """An installed package mjlab_microduck."""
    package = tmp_path / "site" / "mjlab_microduck"
    found = model_in(package / "robot" / "microduck")
    (package / "__init__.py").write_text("raise AssertionError('it must not be run')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return found


@pytest.fixture
def cached(tmp_path):
    """A checkout where TorchRL puts its own."""
    return model_in(tmp_path / "home" / ".cache" / "torchrl" / "microduck" / CHECKOUT / MODEL_FOLDER)


def test_built_in_duck_is_the_default_whatever_lies_on_the_machine(installed, cached):
    assert resolve_scene() == BUILT_IN
    assert BUILT_IN.name == "duck.xml" and BUILT_IN.is_file()


@pytest.mark.parametrize("inside", ["", "robot/microduck", "mjlab_microduck/robot/microduck", MODEL_FOLDER])
def test_checkout_package_or_folder_may_be_named(tmp_path, inside):
    found = model_in(tmp_path / "named" / inside)
    assert resolve_scene(tmp_path / "named") == resolve_scene(str(tmp_path / "named")) == found


def test_scene_file_of_any_name_may_be_named(tmp_path):
    (tmp_path / "mine.xml").write_text("<mujoco/>")
    assert resolve_scene(tmp_path / "mine.xml") == (tmp_path / "mine.xml").resolve()


def test_home_is_found_in_a_path(cached):
    assert resolve_scene(f"~/.cache/torchrl/microduck/{CHECKOUT}") == cached


def test_variable_takes_the_place_of_the_built_in_duck(monkeypatch, tmp_path, cached):
    found = model_in(tmp_path / "variable")
    monkeypatch.setenv("MICRODUCK_RL_ROOT", str(tmp_path / "variable"))
    assert resolve_scene() == found
    monkeypatch.setenv("MICRODUCK_RL_ROOT", "")
    assert resolve_scene() == BUILT_IN


def test_named_path_goes_before_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("MICRODUCK_RL_ROOT", str(tmp_path / "nowhere"))
    found = model_in(tmp_path / "named")
    assert resolve_scene(tmp_path / "named") == found


def test_wrong_path_or_variable_is_refused_rather_than_replaced(monkeypatch, tmp_path, installed, cached):
    gone = tmp_path / "gone"
    with pytest.raises(SceneError, match=r"no scene_walk\.xml") as error:
        resolve_scene(gone)
    for inside in ("", "robot/microduck/", "mjlab_microduck/robot/microduck/", f"{MODEL_FOLDER}/"):
        assert f"  - {gone}/{inside}scene_walk.xml\n" in str(error.value)
    assert str(cached) not in str(error.value)
    monkeypatch.setenv("MICRODUCK_RL_ROOT", str(gone))
    with pytest.raises(FileNotFoundError, match="MICRODUCK_RL_ROOT"):
        resolve_scene()


def test_upstream_is_looked_for_in_variable_package_and_cache_in_that_order(
    monkeypatch, tmp_path, installed, cached
):
    variable = model_in(tmp_path / "variable")
    monkeypatch.setenv("MICRODUCK_RL_ROOT", str(tmp_path / "variable"))
    for found in (variable, installed, cached):
        assert resolve_scene("upstream") == resolve_scene(download=True) == found
        found.unlink()
    with pytest.raises(SceneError) as error:
        resolve_scene("upstream")
    for found in (variable, installed, cached):
        assert f"  - {found}\n" in str(error.value)
    for way_out in (
        "microduck_root",
        "MICRODUCK_RL_ROOT",
        "mjlab_microduck",
        "download=True",
        "built-in duck",
    ):
        assert way_out in str(error.value)
    assert COMMIT[:9] in str(error.value)


def test_cache_may_be_elsewhere(tmp_path):
    found = model_in(tmp_path / "cache" / CHECKOUT / MODEL_FOLDER)
    assert resolve_scene("upstream", root=tmp_path / "cache") == found


def test_upstream_model_of_another_digest_than_given_is_refused_naming_both(installed):
    right = digest(installed.parent)
    assert resolve_scene(download=f"sha256:{right}") == installed
    with pytest.raises(SceneError, match=f"{installed.parent} has the SHA-256 {right}, not {'0' * 64}"):
        resolve_scene(download=f"sha256:{'0' * 64}")


def test_record_of_the_cached_checkout_does_not_bind_a_model_found_elsewhere(tmp_path, installed, cached):
    record = tmp_path / "home/.cache/torchrl/microduck" / f"{CHECKOUT}.sha256"
    record.write_text("0" * 64)
    assert resolve_scene("upstream") == installed
    installed.unlink()
    with pytest.raises(SceneError, match="0" * 64):
        resolve_scene("upstream")


@pytest.mark.parametrize("download", ["yes", "", 1, None, "sha256:12", f"sha256:{'G' * 64}", f"{'0' * 64}"])
def test_other_values_of_download_are_refused_naming_the_valid_ones(download):
    with pytest.raises(ConfigError, match=r'True, False, "force" or "sha256:"'):
        resolve_scene(download=download)


def test_without_a_network_the_message_leads_to_the_built_in_duck(tmp_path):
    for download in (True, "force", f"sha256:{'0' * 64}"):
        with pytest.raises(SceneError, match=r"cannot download https://127\.0\.0\.1:1/none\.zip: .*built-in"):
            resolve_scene(root=tmp_path / "cache", download=download)
    assert list((tmp_path / "cache").iterdir()) == []


def test_scene_error_is_caught_as_what_it_stands_for():
    assert issubclass(SceneError, DuckError) and issubclass(SceneError, FileNotFoundError)
