"""The page typer: a linear model that gives classes to pages that no other source types.

It is trained in the run itself, on the pages of the dump that other sources type. Most pages
without a class are no entities, or of kinds that no source knows; so they are a class of their own
in training. A page is typed only if its class is much more likely than this one, as likely as for
pages that are known to have it (Elkan and Noto 2008, "Learning classifiers from only positive and
unlabeled data").
"""

from __future__ import annotations

import io
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ontology.classes import ClassTree
from ontology.voting.page_features import N_FEATURES, Pages
from ontology.voting.statements import Bools, Floats, Ints
from ontology.voting.trained_classes import LEFT_OUT, class_number, trained_classes

MOST_PAGES = 10_000
"""Pages that the typer is trained on, at most; more cost time and memory, and help little."""
FOLDS = 5
"""Parts of the pages; each is typed by a model that is trained on the others."""
MOST_FEATURES = 1 << 14
"""Features that the typer looks at: the most frequent ones."""
_FEWEST_JUDGED = 20
"""Held-out pages that a threshold is measured on, at least."""
_PRIOR_PAGES = 3.0
_REGULARISATION = 100.0
_STEPS = 25
"""More steps change no class on any slice, and cost as much as the other steps together."""
_THRESHOLDS = np.arange(50, 101) / 100
"""Thresholds that are tried; a class must be at least as likely as not."""


@dataclass(frozen=True)
class Calibration:
    """How well the typer does on typed pages that its models have not seen.

    Attributes:
        threshold: smallest probability of a class; above 1 if no precision was enough.
        pages: number of typed pages.
        typed: number of those that the typer gives a class.
        right: number of those that have this class, or one below it, by the other sources.
    """

    threshold: float
    pages: int
    typed: int
    right: int


class PageTyper:
    """Gives classes to pages."""

    def __init__(
        self,
        names: Sequence[str],
        depths: Ints,
        columns: Ints,
        weights: Floats,
        coefficients: npt.NDArray[np.float32],
        lines: Bools,
        expected: Floats,
        calibration: Calibration,
    ) -> None:
        """Takes the parameters.

        Args:
            names: the classes that may be given: trained ones and their ancestors.
            depths: depth of each of these below its kind, shape (names,).
            columns: numbers of the features that are looked at, sorted, shape (columns,).
            weights: inverse document frequency of each feature, shape (columns,).
            coefficients: of each fold, shape (folds, columns + 1, classes + 1); the last row is the
                intercept, the last class stands for pages without a class.
            lines: whether each trained class is, or is below, each name, shape (classes, names).
            expected: mean probability, for held-out pages of each trained class, that they have any
                class.
            calibration: the threshold, and how it was found.
        """
        self.names = list(names)
        self._depths = depths
        self._columns, self._weights = columns, weights
        self._coefficients = coefficients
        self._lines, self._expected = lines, expected
        self.calibration = calibration

    @classmethod
    def train(
        cls,
        pages: Pages,
        classes: Sequence[str | None],
        tree: ClassTree,
        precision: float,
        folds: int = FOLDS,
        most_features: int = MOST_FEATURES,
    ) -> PageTyper | None:
        """Trains and calibrates a typer.

        Args:
            pages: the pages.
            classes: class of each page by other sources, None for none.
            tree: the classes.
            precision: least share of right classes on held-out typed pages.
            folds: number of models.
            most_features: number of features.

        Returns:
            The typer; None if there are not enough typed pages.
        """
        labels = trained_classes(classes, tree)
        trained = sorted({label for label in labels if label})
        if len(trained) < 2 or sum(label in trained for label in labels) < _FEWEST_JUDGED:
            return None
        names = sorted({name for label in trained for name in (label, *tree.ancestors(label))})
        lines = np.array([[n == c or n in tree.ancestors(c) for n in names] for c in trained])
        columns, weights = _columns(pages, most_features)
        label_ids = np.array([class_number(label, trained) for label in labels])
        typer = cls(
            names,
            np.array([tree.depth(name) for name in names]),
            columns,
            weights,
            np.zeros((folds, len(columns) + 1, len(trained) + 1), np.float32),
            lines,
            np.ones(len(trained)),
            Calibration(2.0, 0, 0, 0),
        )
        typer._fit(pages, label_ids)
        typer._calibrate(pages, label_ids, classes, tree, precision)
        return typer

    def _fit(self, pages: Pages, label_ids: Ints) -> None:
        """Trains a model on the pages outside of each fold."""
        # These take a second to load, and many runs need none.
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from threadpoolctl import threadpool_limits

        n_folds = len(self._coefficients)
        matrix, folds = self._matrix(pages), pages.fold(n_folds)
        has_label = label_ids != LEFT_OUT
        for fold in range(n_folds):
            rows = np.flatnonzero(has_label & (folds != fold))
            if len(np.unique(label_ids[rows])) < 2:
                continue
            model = LogisticRegression(C=_REGULARISATION, max_iter=_STEPS)
            # Sums of several threads depend on their number.
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(matrix[rows], label_ids[rows])
            coefficients = np.vstack([model.coef_.T, model.intercept_])
            if len(model.classes_) == 2:
                coefficients = np.hstack([np.zeros_like(coefficients), coefficients])
            # A class that has no page here is never given.
            self._coefficients[fold][-1] = -100
            self._coefficients[fold][:, model.classes_] = np.round(coefficients, 4)

    def _calibrate(
        self,
        pages: Pages,
        label_ids: Ints,
        classes: Sequence[str | None],
        tree: ClassTree,
        precision: float,
    ) -> None:
        """Finds the smallest threshold from which on the precision is high enough."""
        n_classes = len(self._expected)
        raw = self._raw(pages)
        any_class = raw.sum(1)
        mean = any_class[(label_ids >= 0) & (label_ids < n_classes)].mean()
        for number in range(n_classes):
            of_class = any_class[label_ids == number]
            self._expected[number] = (of_class.sum() + _PRIOR_PAGES * mean) / (
                len(of_class) + _PRIOR_PAGES
            )
        rows = [row for row, name in enumerate(classes) if name is not None]
        true_lines = [{classes[row], *tree.ancestors(classes[row] or "")} for row in rows]
        chances = self._chances(raw[rows])
        best = Calibration(2.0, len(rows), 0, 0)
        for threshold in _THRESHOLDS[::-1].tolist():
            predicted = self._predicted(chances, threshold)
            typed_rows = np.flatnonzero(predicted >= 0).tolist()
            right = sum(self.names[predicted[row]] in true_lines[row] for row in typed_rows)
            if len(typed_rows) >= _FEWEST_JUDGED:
                if right < precision * len(typed_rows):
                    break
                best = Calibration(threshold, len(rows), len(typed_rows), right)
        self.calibration = best

    def classes_of(self, pages: Pages) -> Ints:
        """Index into `names` of the class of each page, -1 for none, shape (pages,)."""
        return self._predicted(self.chances(pages), self.calibration.threshold)

    def chances(self, pages: Pages) -> Floats:
        """Probability that each name is right for each page, shape (pages, names)."""
        return self._chances(self._raw(pages))

    def _matrix(self, pages: Pages) -> Any:
        """Weighted features of the pages as a sparse matrix, each row of length 1."""
        rows = np.repeat(np.arange(len(pages.keys)), pages.sizes)
        place = np.minimum(
            np.searchsorted(self._columns, pages.features), max(len(self._columns) - 1, 0)
        )
        is_known = self._columns[place] == pages.features
        rows, place = rows[is_known], place[is_known]
        values = self._weights[place]
        norms = np.sqrt(np.bincount(rows, values**2, len(pages.keys)))
        values = values / norms[rows]
        return csr_matrix((values, (rows, place)), (len(pages.keys), len(self._columns)))

    def _raw(self, pages: Pages) -> Floats:
        """Probability of each trained class by the model that has not seen the page."""
        n_folds = len(self._coefficients)
        matrix, folds = self._matrix(pages), pages.fold(n_folds)
        raw = np.zeros((len(pages.keys), len(self._expected)))
        is_known = (
            np.diff(matrix.indptr) > 0
        )  # pages without known features would get the prior only
        for fold in range(n_folds):
            rows = np.flatnonzero((folds == fold) & is_known)
            if len(rows):
                scores = matrix[rows] @ self._coefficients[fold][:-1].astype(np.float64)
                scores += self._coefficients[fold][-1]
                scores = np.exp(scores - scores.max(1, keepdims=True))
                raw[rows] = (scores / scores.sum(1, keepdims=True))[:, :-1]
        return raw

    def _chances(self, raw: Floats) -> Floats:
        return np.minimum(raw / self._expected @ self._lines, 1.0)

    def _predicted(self, chances: Floats, threshold: float) -> Ints:
        """The deepest name with a probability of at least the threshold, -1 for none."""
        # Classes above the kinds, such as Agent, do not say what a page is about.
        possible = (chances >= threshold - 1e-6) & (self._depths > 0)
        score = np.where(possible, self._depths + chances / 2, -1.0)
        best = score.argmax(1) if len(self.names) else np.zeros(len(chances), np.int64)
        return np.where(possible.any(1), best, -1)

    def to_bytes(self) -> bytes:
        """The typer as the content of a file."""
        calibration = self.calibration
        return _npz(
            names=np.array(self.names),
            depths=self._depths,
            columns=self._columns,
            weights=self._weights,
            coefficients=self._coefficients,
            lines=self._lines,
            expected=self._expected,
            calibration=np.array(
                [calibration.threshold, calibration.pages, calibration.typed, calibration.right]
            ),
        )

    @classmethod
    def from_bytes(cls, content: bytes) -> PageTyper:
        """Reads what `to_bytes` made."""
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            threshold, *counts = arrays["calibration"].tolist()
            return cls(
                arrays["names"].tolist(),
                arrays["depths"],
                arrays["columns"],
                arrays["weights"],
                arrays["coefficients"],
                arrays["lines"],
                arrays["expected"],
                Calibration(threshold, *map(int, counts)),
            )


def _npz(**arrays: npt.NDArray[Any]) -> bytes:
    """Arrays as the content of an .npz file, the same with every Python; numpy's own is not."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # of 1980
            entry.create_system, entry.create_version = 3, 20
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            # Level 1 takes a sixth of the time of level 6, and 4 % more room.
            archive.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED, 1)
    return file.getvalue()


def _columns(pages: Pages, most: int) -> tuple[Ints, Floats]:
    """The most frequent features of at least two pages, and their inverse document frequency."""
    counts = np.bincount(pages.features, minlength=N_FEATURES)
    order = np.argsort(-counts, kind="stable")[:most]
    columns = np.sort(order[counts[order] >= 2])
    return columns, np.log((1 + len(pages.keys)) / (1 + counts[columns])) + 1
