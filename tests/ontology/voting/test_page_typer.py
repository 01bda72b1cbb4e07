"""The page typer, against scikit-learn and against pages whose class is known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from ontology.classes import ClassTree
from ontology.titles import title_keys
from ontology.voting import trained_classes
from ontology.voting.page_features import Pages, hashed
from ontology.voting.page_typer import PageTyper

TREE = ClassTree.shipped()
KINDS = {
    "City": ["town", "river", "mayor", "streets"],
    "Writer": ["born", "novels", "poet", "prize"],
    "Band": ["songs", "album", "singer", "tour"],
    None: ["theory", "method", "number", "concept"],
}


def some_pages(count: int, hidden: float, seed: int = 0):
    """Pages of each kind, and their classes, of which a share is hidden."""
    draw = np.random.default_rng(seed)
    texts, truth, seen = [], [], []
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        own = {word for word in KINDS[kind] if draw.random() < 0.8}
        texts.append(own | {f"noise {draw.integers(20)}", "all"})
        truth.append(kind)
        seen.append(None if draw.random() < hidden else kind)
    keys = title_keys([f"Page {seed} {number}" for number in range(count)])
    return Pages(keys, *hashed(texts)), truth, seen


def trained(precision: float = 0.95, hidden: float = 0.3) -> PageTyper:
    pages, _, seen = some_pages(400, hidden)
    typer = PageTyper.train(pages, seen, TREE, precision)
    assert typer is not None
    return typer


def names_of(typer: PageTyper, pages: Pages) -> list[str | None]:
    return [typer.names[i] if i >= 0 else None for i in typer.classes_of(pages).tolist()]


def test_new_pages_get_their_class_and_concepts_none():
    typer = trained()
    pages, truth, _ = some_pages(400, 0, seed=1)
    found = names_of(typer, pages)
    given = [(name, true) for name, true in zip(found, truth, strict=True) if name is not None]
    right = [name for name, true in given if true and name in (true, *TREE.ancestors(true))]
    assert len(given) > 200
    assert len(right) >= 0.95 * len(given)


def test_hidden_classes_are_found_in_the_training_pages():
    pages, truth, seen = some_pages(400, 0.3)
    found = names_of(trained(), pages)
    hidden = [row for row in range(400) if truth[row] and not seen[row]]
    assert sum(found[row] == truth[row] for row in hidden) > 0.6 * len(hidden)


def test_calibration_counts_held_out_pages():
    pages, _, seen = some_pages(400, 0.3)
    typer = trained()
    found = typer.calibration
    given = names_of(typer, pages)
    rows = [row for row in range(400) if seen[row] is not None]
    typed = [row for row in rows if given[row] is not None]
    right = [row for row in typed if given[row] in (seen[row], *TREE.ancestors(seen[row]))]
    assert (found.pages, found.typed, found.right) == (len(rows), len(typed), len(right))
    assert found.right >= 0.95 * found.typed


def test_probabilities_are_those_of_scikit_learn():
    pages, _, seen = some_pages(200, 0.3)
    typer = PageTyper.train(pages, seen, TREE, 0.95)
    matrix, folds = typer._matrix(pages), pages.fold(5)
    classes = sorted({name for name in seen if name})
    labels = np.array([classes.index(name) if name else len(classes) for name in seen])
    for fold in range(5):
        model = LogisticRegression(C=100, max_iter=25)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(matrix[folds != fold], labels[folds != fold])
        wanted = model.predict_proba(matrix[folds == fold])[:, : len(classes)]
        assert np.allclose(typer._raw(pages)[folds == fold], wanted, atol=2e-3)


def test_it_is_silent_if_no_threshold_is_precise_enough():
    pages, _, seen = some_pages(400, 0.3)
    draw = np.random.default_rng(3)
    shuffled = [seen[row] for row in draw.permutation(400)]
    typer = PageTyper.train(pages, shuffled, TREE, 0.95)
    assert typer.calibration.typed == 0
    assert (typer.classes_of(pages) == -1).all()


@pytest.mark.parametrize("count", [0, 1, 40])
def test_too_few_typed_pages(count):
    pages, _, seen = some_pages(count, 0.7)
    assert PageTyper.train(pages, seen, TREE, 0.95) is None


def test_rare_classes_count_for_the_class_above():
    classes = ["Writer"] * 3 + ["Poet", "Country"]
    assert trained_classes.trained_classes(classes, TREE) == ["Writer"] * 3 + [
        "Writer" if "Writer" in TREE.ancestors("Poet") else "Person",
        None,
    ]


def test_a_saved_typer_is_the_same():
    typer = trained()
    content = typer.to_bytes()
    again = PageTyper.from_bytes(content)
    pages = some_pages(100, 0, seed=2)[0]
    assert np.array_equal(again.classes_of(pages), typer.classes_of(pages))
    assert again.calibration == typer.calibration
    assert trained().to_bytes() == content


def test_pages_without_known_features_get_none():
    pages = Pages(title_keys(["A"]), *hashed([{"never seen"}]))
    assert trained().classes_of(pages).tolist() == [-1]
