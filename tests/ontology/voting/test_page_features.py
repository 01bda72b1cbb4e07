"""Features of pages for the page typer."""

from __future__ import annotations

import numpy as np

from ontology.voting.page_features import N_FEATURES, hashed, page_features


def test_title_categories_templates_and_opening():
    found = page_features(
        "Abba (band)",
        ["Musical groups established in 1972"],
        [("Short description", ["1=Swedish pop group"]), ("Sweden-band-stub", [])],
        "Abba is a Swedish pop group.",
    )
    assert {
        "title:abba",
        "bracket:band",
        "category:musical groups",
        "category ends:0000",
        "description:pop group",
        "template:stub",
        "opening:swedish pop",
    } <= found
    assert not any("abba" in feature for feature in found if feature.startswith("opening"))


def test_years_are_alike():
    one = page_features("A", ["1926 births"], [], "A (1926) is B.")
    assert one == page_features("A", ["1931 births"], [], "A (1931) is B.")


def test_scripts_without_spaces_are_cut_into_letters():
    assert "opening:漫 画" in page_features("幻", [], [], "幻は漫画家。")


def test_hashes_are_the_same_for_the_same_texts():
    pages = [{"b", "a"}, set(), {"a"}]
    numbers, sizes = hashed(pages)
    assert sizes.tolist() == [2, 0, 1]
    assert numbers[0] == numbers[2]
    assert ((numbers >= 0) & (numbers < N_FEATURES)).all()
    assert np.array_equal(numbers, hashed(pages)[0])
