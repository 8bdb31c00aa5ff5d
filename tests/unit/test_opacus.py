"""Networks trained by Opacus: ε̂ as another library computes it, noise and clipping as the card says, and a stop where ε̂ is reached."""

import numpy as np
import pytest

pytest.importorskip("opacus", reason="there is no opacus: its trainer is NOT tested. pip install -e '.[test,torch]'")
dp_accounting = pytest.importorskip("dp_accounting")

from experiments.paper import _opacus  # noqa: E402

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
ROWS = (RNG.random((400, 12)) < 0.4).astype(np.float32)
TRUTH = np.where(ROWS[:, 0] + ROWS[:, 1] > 0, 1.0, -1.0)
SMALL = _opacus.Recipe(batch=40, epochs=3, rate=1.0)


def by_dp_accounting(parameters):
    """ε̂ at DELTA of the same steps, by Google's privacy loss distributions."""
    event = dp_accounting.PoissonSampledDpEvent(
        parameters["sample_rate"], dp_accounting.GaussianDpEvent(parameters["noise_multiplier"])
    )
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    return accountant.compose(event, parameters["steps"]).get_epsilon(_opacus.DELTA)


@pytest.mark.parametrize(("noise", "share", "steps"), [(1.0, 0.02, 150), (2.5, 0.1, 60), (0.8, 0.01, 400)])
def test_epsilon_agrees_with_dp_accounting_within_one_percent(noise, share, steps):
    there = by_dp_accounting({"noise_multiplier": noise, "sample_rate": share, "steps": steps})
    assert _opacus.epsilon_of_steps(noise, share, steps) == pytest.approx(there, rel=0.01)


@pytest.mark.parametrize("recipe", [SMALL, _opacus.replace(SMALL, noise=3.0)])
def test_a_card_states_what_training_spent(recipe):
    card = _opacus.train(_opacus.text_network(12), ROWS, TRUTH, 2.0, recipe).card
    assert card.epsilon == pytest.approx(by_dp_accounting(card.parameters), rel=0.01)
    assert card.epsilon <= 2.0 * 1.01
    assert (card.delta, card.rows, card.parameters["clip"]) == (_opacus.DELTA, 400, 1.0)


def test_training_stops_where_epsilon_is_reached():
    steps = _opacus.steps_within(1.0, 2.0, 0.05, 500)
    assert _opacus.epsilon_of_steps(2.0, 0.05, steps) <= 1.0 < _opacus.epsilon_of_steps(2.0, 0.05, steps + 1)


def test_without_privacy_the_card_says_so_and_the_model_learns():
    found = _opacus.train(_opacus.text_network(12), ROWS, TRUTH, None, _opacus.replace(SMALL, epochs=15))
    assert found.card.epsilon is None
    assert found.accuracy(ROWS, TRUTH) > 0.95


def test_plain_training_may_mirror_images_and_anneal_its_rate():
    images = RNG.normal(size=(96, 1, 8, 8)).astype(np.float32)
    right = images[:, 0, :, 5:].mean(axis=(1, 2)) + images[:, 0, :, :3].mean(axis=(1, 2)) > 0  # the same for a mirrored image
    recipe = _opacus.replace(_opacus.FACE_PLAIN, batch=16, epochs=30)
    found = _opacus.train(_opacus.face_network(8), images, np.where(right, 1.0, -1.0), None, recipe)
    assert found.accuracy(images, np.where(right, 1.0, -1.0)) > 0.9
    assert (found.card.parameters["mirrored"], found.card.parameters["annealed"], found.card.epsilon) == (True, True, None)


def test_one_step_moves_weights_by_clipped_gradients_and_the_noise_that_is_stated():
    """Rows of zeros have no gradient in the first layer: what moves it is noise, of standard deviation rate · noise · clip / batch."""
    recipe = _opacus.Recipe(batch=400, epochs=1, rate=1.0, clip=0.5, noise=4.0)
    net = _opacus.text_network(500)
    before = net[0].weight.detach().clone()
    _opacus.train(net, np.zeros((400, 500), dtype=np.float32), TRUTH, 100.0, recipe)
    moved = (net[0].weight.detach() - before).numpy()
    assert moved.std() == pytest.approx(4.0 * 0.5 / 400, rel=5 / np.sqrt(2 * moved.size))


def test_models_are_read_from_the_cache(tmp_path):
    wanted = {"f_2": 2.0}
    first, second = (
        _opacus.models(lambda: _opacus.text_network(12), ROWS, TRUTH, wanted, SMALL, tmp_path)["f_2"] for _ in range(2)
    )
    assert first.card == second.card
    assert np.array_equal(first(ROWS), second(ROWS))
