"""What documents say about the titles that they link."""

import numpy as np

from ontology.titles import title_keys
from ontology.voting.page_features import hashed, link_features, title_features
from pipeline.documents.rows import empty_row, to_batch
from pipeline.entities.facts import link_facts


def document(text, *links):
    anchors = [
        (text.index(s), text.index(s) + len(s), target, name, 0) for s, target, name in links
    ]
    return empty_row(title="X", text=text, anchors=anchors)


def test_links_to_wanted_titles():
    texts = ["He lived in Ulm for long.", "No link.", "Born near Ulm, in the town, he left tennis."]
    rows = [
        document(texts[0], ("Ulm", "Ulm", True), ("long", "Long", True)),
        document(texts[1]),
        document(texts[2], ("Ulm", "Ulm", True), ("town", "Town", False)),
    ]
    stated = np.sort(title_keys(["Ulm", "Town"]))
    facts = link_facts([to_batch(rows[:2]), to_batch(rows[2:])], stated)
    assert facts.column("key").to_pylist() == title_keys(["Ulm"]).tolist()
    features = title_features("Ulm")
    features |= link_features(texts[0], 12, 15) | link_features(texts[2], 10, 13)
    assert facts.column("features")[0].as_py() == hashed([features])[0].tolist()


def test_no_title_is_wanted():
    batch = to_batch([document("In Ulm.", ("Ulm", "Ulm", True))])
    assert len(link_facts([batch], title_keys([]))) == 0
    assert len(link_facts([], title_keys(["Ulm"]))) == 0
