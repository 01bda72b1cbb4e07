from finetune.data import conll
from finetune.data.sets import DataSets
from finetune.papers.dualner.data import Names, read
from finetune.papers.dualner.settings import DualSettings


def test_text_of_the_target_and_shares_of_the_source(world, tmp_path):
    first, second = str(world / "first"), str(world / "second")
    (tmp_path / "text.txt").write_text("Ein Satz, hier.\n\nNoch einer\n")
    names = Names(first, (second,), (str(tmp_path / "text.txt"),))
    data = read(names, DualSettings(), DataSets(), 0.25, seed=3)
    assert len(data.labelled) == 75
    assert [number for number, _ in data.unlabelled] == [0] * 225 + [1] * 2
    assert data.unlabelled[-2][1] == ["Ein", "Satz", ",", "hier", "."]
    train = {tuple(row.tokens) for row in conll.read(str(world / "first" / "train.txt"))}
    assert {tuple(words) for _, words in data.unlabelled[:225]} <= train
    small = DualSettings(
        source_sentences=50, target_sentences=20, dev_sentences=5, test_sentences=7
    )
    few = read(Names(first, (second,)), small, DataSets())
    assert (len(few.labelled), len(few.unlabelled)) == (50, 20)
    assert [len(rows) for rows in few.dev.values()] == [5, 5]
    assert [len(rows) for rows in few.test.values()] == [7, 7]


def test_documents_of_the_pipeline_are_text(world, demo):
    settings = DualSettings(target_sentences=10)
    names = Names(str(world / "first"), (str(world / "second"),), (str(demo[0]),))
    data = read(names, settings, DataSets())
    assert len(data.unlabelled) == 10
    assert all(words for _, words in data.unlabelled)
