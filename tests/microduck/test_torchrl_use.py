"""The environment inside TorchRL's own machinery."""

from functools import partial

import pytest
import torch
from tensordict import TensorDict
from torchrl.collectors import Collector
from torchrl.envs import (
    MicroDuckEnv as Peer,
)
from torchrl.envs import (
    ObservationNorm,
    ParallelEnv,
    RewardSum,
    SerialEnv,
    StepCounter,
    TransformedEnv,
)
from torchrl.envs.utils import RandomPolicy, check_env_specs
from torchrl.record import VideoRecorder

from hardware.errors import ConfigError, TaskError
from microduck import MicroDuckEnv, MicroDuckTaskSampler, load_library, save_library


def rows():
    return [MicroDuckEnv.speed_range_task(0.1, 0.3), MicroDuckEnv.standing_task(), MicroDuckEnv.jump_task()]


def make(num_envs=2, **settings):
    return MicroDuckEnv(tasks=rows(), num_envs=num_envs, seed=0, **settings)


def test_a_collector_gathers_batches_across_resets():
    env = make(4)
    collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=200, total_frames=600)
    batches = [batch.clone() for batch in collector]
    collector.shutdown()
    assert [batch.shape for batch in batches] == [(4, 50)] * 3
    together = torch.cat(batches, 1)
    done = together["next", "done"].squeeze(-1)
    assert done.any()
    after = together["observation"][:, 1:][done[:, :-1]]
    assert after[:, 41].abs().max() == 0  # the ramp of the gait clock begins again after every end


def test_transforms_of_torchrl_apply():
    env = TransformedEnv(make(3), StepCounter(max_steps=20))
    env.append_transform(RewardSum())
    env.append_transform(ObservationNorm(loc=1.0, scale=2.0, in_keys=["observation"]))
    rollout = env.rollout(20, break_when_any_done=False)
    plain = make(3).reset()["observation"]
    assert torch.allclose(rollout["observation"][:, 0], 2 * plain + 1)
    assert rollout["next", "step_count"].max() == 20
    assert "episode_reward" in set(rollout["next"].keys())
    check_env_specs(env)


def test_a_rollout_resets_by_itself_and_stops_at_the_first_end_if_asked():
    env = make(8)
    whole = env.rollout(120, break_when_any_done=False)
    assert whole.shape == (8, 120) and whole["next", "done"].sum() >= 8
    short = env.rollout(120)
    assert short.shape[1] < 120 and short["next", "done"][:, -1].any()


@pytest.mark.parametrize("kind", [SerialEnv, ParallelEnv])
def test_batched_environments_hold_ours(kind):
    # Not `make`: a worker process cannot import a test.
    env = kind(2, partial(MicroDuckEnv, tasks=rows(), num_envs=2, seed=0))
    try:
        check_env_specs(env)
        given = TensorDict({"task_id": torch.tensor([[[1], [2]], [[0], [1]]])}, batch_size=[2, 2])
        rollout = env.rollout(10, tensordict=env.reset(given), auto_reset=False)
        assert rollout["next", "observation"].shape == (2, 2, 10, 56)
        assert rollout["next", "task_id"][:, :, -1, 0].tolist() == [[1, 2], [0, 1]]
    finally:
        env.close()


def test_a_term_registered_in_a_function_reaches_worker_processes():
    class Still(MicroDuckEnv):
        pass

    @Still.register_reward("still_head", still_head_std=1.0)
    def still_head(features, params):
        speed = features["joint_velocity"][..., 5:9].square().sum(-1)
        return torch.exp(-speed / params["still_head_std"].square())

    row = Still.standing_task(reward_weights={"still_head": 50.0})
    env = ParallelEnv(2, partial(Still, tasks=[row], diagnostics=True))
    try:
        rollout = env.rollout(3)
        paid = rollout["next", "diagnostic_reward_still_head"]
        assert paid.shape == (2, 1, 3, 1)
        assert float(paid.min()) > 0 and float(paid.max()) <= 1.0  # 50 a second, for 20 ms
    finally:
        env.close()
    assert "still_head" not in MicroDuckEnv.REWARD_TERMS


def test_a_subclass_that_copies_torchrls_tables_keeps_its_terms_to_itself():
    class Own(MicroDuckEnv):
        REWARD_TERMS = dict(MicroDuckEnv.REWARD_TERMS)  # noqa: RUF012  (as TorchRL's users write it)
        REWARD_PARAMS = dict(MicroDuckEnv.REWARD_PARAMS)  # noqa: RUF012

    Own.register_reward("lazy", weight=3.0, lazy_scale=2.0)(lambda features, params: features["upright"])
    assert "lazy" in Own.REWARD_TERMS and "lazy" not in MicroDuckEnv.REWARD_TERMS
    assert Own.REWARD_PARAMS["lazy_scale"] == 2.0 and "lazy_scale" not in MicroDuckEnv.REWARD_PARAMS
    env = Own(tasks=[MicroDuckEnv.standing_task(), Own.standing_task(name="lazy standing")], diagnostics=True)
    assert env.tasks.reward_weights[:, -1].tolist() == [0.0, 3.0]
    Own.unregister_reward("lazy")
    assert "lazy" not in Own.REWARD_TERMS
    assert env.rollout(2)["next", "diagnostic_reward_lazy"].shape == (
        1,
        2,
        1,
    )  # what is built stays as it was


def test_a_term_registered_on_the_environment_is_the_toolkits_and_is_kept_in_archives(tmp_path):
    @MicroDuckEnv.register_reward("glide", glide_scale=2.0)
    def glide(features, params):
        return torch.zeros(features.batch_size, device=features.device) + params["glide_scale"]

    try:
        save_library(MicroDuckEnv.standing_task(reward_weights={"glide": 5.0}), tmp_path / "glide.tdz")
        env = MicroDuckEnv(tasks=load_library(tmp_path / "glide.tdz"), diagnostics=True)
        assert float(env.rollout(1)["next", "diagnostic_reward_glide"]) == pytest.approx(5.0 * 2.0 * 0.02)
    finally:
        unregister = MicroDuckEnv.unregister_reward
        unregister("glide")
    with pytest.raises(TaskError, match="'glide', which task 'standing' weighs 5, is not registered"):
        load_library(tmp_path / "glide.tdz")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"_compute_reward": lambda self: None}, "Own overrides _compute_reward, which nothing calls here"),
        ({"MIN_UPRIGHT": 0.9}, "Own sets MIN_UPRIGHT to 0.9, which nothing would follow"),
    ],
)
def test_what_torchrls_subclasses_may_change_and_ours_may_not_is_refused(body, message):
    with pytest.raises(ConfigError, match=message):
        type(MicroDuckEnv)("Own", (MicroDuckEnv,), body)


def test_the_example_of_torchrls_documentation_runs():
    class Env(MicroDuckEnv):
        pass

    @Env.register_reward("heading", heading_std=0.3)
    def heading(features, params):
        return torch.exp(-features["angular_velocity"][..., 2].square() / params["heading_std"].square())

    task = Env.tracking_task(0.2, reward_weights={"heading": 1.0}, heading_std=0.5)
    assert float(task.params["heading_std"]) == 0.5
    assert torch.isfinite(Env(tasks=task).rollout(3)["next", "reward"]).all()


def test_rows_without_any_weight_leave_the_reward_to_a_transform():
    row = MicroDuckEnv.standing_task(reward_weights=dict.fromkeys(MicroDuckEnv.REWARD_TERMS, 0.0))
    rollout = MicroDuckEnv(tasks=row, num_envs=2, diagnostics=True).rollout(3)
    assert rollout["next", "reward"].shape == (2, 3, 1) and not rollout["next", "reward"].any()


def test_a_task_sampler_of_torchrls_kind_picks_the_rows():
    env = TransformedEnv(make(6), MicroDuckTaskSampler([0.0, 0.0, 1.0]))
    assert env.rollout(40, break_when_any_done=False)["task_id"].unique().tolist() == [2]


def test_every_name_of_torchrls_class_exists():
    missing = [name for name in vars(Peer) if not name.startswith("_") and not hasattr(MicroDuckEnv, name)]
    assert missing == ["reward_features"]  # `features` holds those of the last step


class Frames:
    """Stands where TorchRL expects a logger; keeps the video."""

    exp_name = "frames"

    def log_video(self, name, video, step=None, **arguments):
        self.video = video


def test_a_video_recorder_films_the_ducks():
    logger = Frames()
    env = TransformedEnv(make(2, from_pixels=True), VideoRecorder(logger, tag="walk", make_grid=True))
    env.rollout(6, break_when_any_done=False)
    env.transform.dump()
    assert logger.video.shape[:3] == (1, 7, 3)  # a picture of the reset and of every step
    assert logger.video.float().std() > 10
    env.close()
