"""The component of spaCy says what the tagger says."""

import pytest

from tests.helpers.lazy import lazy

spacy = pytest.importorskip("spacy")
tagger = lazy("finetune.tagger.tagger")
TEXTS = ["Ada Byron lived in Bern. Emmy Noether lived in Ulm.", "", "Nobody.", "(Bern)-Ulm"]


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    fitted.save(folder)
    return str(folder)


def test_entities_are_those_of_the_tagger(saved):
    nlp = spacy.blank("en")
    nlp.add_pipe("nerbert", config={"model": saved})
    expected = tagger.Tagger.load(saved).predict(TEXTS)
    for docs in (list(nlp.pipe(TEXTS, batch_size=3)), [nlp(text) for text in TEXTS]):
        assert [doc.text for doc in docs] == TEXTS
        for doc, entities in zip(docs[:3], expected[:3], strict=True):
            found = [(e.start_char, e.end_char, e.label_, e.text) for e in doc.ents]
            assert found == [(e.start, e.end, e.type, e.text) for e in entities]
            assert [e._.score for e in doc.ents] == pytest.approx(
                [e.score for e in entities], abs=1e-6
            )
    assert docs[0].ents


def test_entities_of_others_stay(saved):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "NAME", "pattern": "Byron"}])
    nlp.add_pipe("nerbert", config={"model": saved})
    ents = [(e.text, e.label_) for e in nlp(TEXTS[0]).ents]
    assert ("Byron", "NAME") in ents
    assert ("Bern", "city") in ents
    nlp.remove_pipe("nerbert")
    nlp.add_pipe("nerbert", config={"model": saved, "overwrite": True})
    assert ("Ada Byron", "person") in [(e.text, e.label_) for e in nlp(TEXTS[0]).ents]


def test_smallest_score_and_a_saved_pipeline(saved, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("nerbert", config={"model": saved, "min_score": 1.0})
    assert not nlp(TEXTS[0]).ents
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert again.get_pipe_meta("nerbert").assigns == ["doc.ents", "token.ent_iob", "token.ent_type"]
    assert not again(TEXTS[0]).ents
