from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.lazy import lazy

trainer = lazy("pretrain.training.trainer")

DRAW = np.random.default_rng(3)
LENGTHS = DRAW.gamma(4.0, 10.0, 5000).astype(np.int32).clip(3, 128)


def batches(lengths, *arguments, epoch=0, **options):
    sampler = trainer.LengthBatches(lengths, *arguments, **options)
    sampler.set_epoch(epoch)
    found = list(sampler)
    assert len(found) == len(sampler)
    return found


def steps(lengths, batch_size, accumulation, world, **options):
    """Pieces of each optimiser step, over all devices."""
    ranks = [
        batches(lengths, batch_size, accumulation, world, rank, **options) for rank in range(world)
    ]
    assert len({len(found) for found in ranks}) == 1
    count = len(ranks[0]) // accumulation
    return [
        sorted(
            piece
            for found in ranks
            for batch in found[i * accumulation :][:accumulation]
            for piece in batch
        )
        for i in range(count)
    ]


@pytest.mark.parametrize(("accumulation", "world"), [(1, 1), (4, 1), (1, 3), (3, 8)])
@pytest.mark.parametrize("size", [24, 25, 959, 960, 961, 5000])
def test_every_piece_once_on_one_device(size, accumulation, world):
    found = steps(LENGTHS[:size], 960, accumulation, world)
    assert sorted(piece for step in found for piece in step) == list(range(size))
    assert len(found) == -(-size // 960)
    sizes = {len(step) for step in found}
    assert max(sizes) - min(sizes) <= 1


def test_batches_of_a_step_are_of_equal_size():
    sizes = {len(b) for rank in range(3) for b in batches(LENGTHS, 96, 4, 3, rank)}
    assert sizes <= {7, 8, 9}


def test_a_step_holds_the_same_pieces_on_any_number_of_devices():
    assert steps(LENGTHS, 96, 1, 1) == steps(LENGTHS, 96, 4, 1) == steps(LENGTHS, 96, 2, 6)


def test_order_depends_on_seed_and_epoch_alone():
    first = batches(LENGTHS, 96)
    assert first == batches(LENGTHS, 96)
    assert first != batches(LENGTHS, 96, epoch=1)
    assert first != batches(LENGTHS, 96, seed=1)


@pytest.mark.parametrize(("data_seed", "expected"), [(None, 3), (0, 0), (7, 7)])
def test_the_order_may_have_a_seed_of_its_own(data_seed, expected, monkeypatch):
    seeds = []

    class Sampler(trainer.LengthBatches):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seeds.append(arguments[5])

    monkeypatch.setattr("pretrain.training.trainer.LengthBatches", Sampler)
    monkeypatch.setattr("pretrain.training.features.PieceFeatures.lengths", LENGTHS)
    pieces = trainer.PieceFeatures.__new__(trainer.PieceFeatures)
    args = SimpleNamespace(
        seed=3,
        data_seed=data_seed,
        gradient_accumulation_steps=1,
        world_size=1,
        process_index=0,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
    )
    run = SimpleNamespace(
        args=args, train_dataset=pieces, _batch_size=96, _window=1, _groups=None, data_collator=list
    )
    trainer.TaggingTrainer.get_train_dataloader(run)
    assert seeds == [expected]


def test_little_padding_and_shuffled_steps():
    found = batches(LENGTHS, 32)
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in found)
    assert 1 - LENGTHS.sum() / padded < 0.05
    means = np.array([LENGTHS[batch].mean() for batch in found])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.2
    # Pieces come from all over the corpus in every window.
    assert np.std([piece for batch in found[:50] for piece in batch]) > 0.9 * 5000 / 12**0.5


def test_an_empty_batch_is_refused():
    with pytest.raises(ValueError, match="3 pieces do not fill 2 x 2 batches"):
        trainer.LengthBatches(LENGTHS[:3], 960, 2, 2)
