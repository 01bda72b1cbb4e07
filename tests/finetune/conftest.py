import pytest

from nerbert.text.corpus import Corpus
from tests.helpers.corpora import simple_corpus
from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

data = lazy("pretrain.training.features")
tagger = lazy("finetune.tagger.tagger")
tiny = lazy("pretrain.training.tiny")
torch = lazy("torch")


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """A tiny encoder whose vocabulary knows the toy set."""
    folder = tmp_path_factory.mktemp("base")
    corpus = Corpus.open(str(simple_corpus(folder / "corpus")))
    torch.manual_seed(0)  # the same weights whatever test comes first
    tiny.build(data.load_split(corpus, "train", cache_dir=str(folder / "cache")), folder / "tiny")
    return str(folder / "tiny")


@pytest.fixture(scope="session")
def fitted(base):
    return tagger.Tagger(base, QUICK).fit(rows(48), rows(12, 48))


@pytest.fixture(scope="session")
def saved(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "tagger"
    fitted.save(str(folder))
    return str(folder)
