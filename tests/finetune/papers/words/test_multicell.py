"""The multi-cell compositional LSTM, against its equations written out for one word at a time."""

import pytest

from tests.helpers.lazy import lazy

multicell = lazy("finetune.papers.words.multicell")
crf_module = lazy("finetune.heads.crf")
sequence = lazy("finetune.papers.words.states")
torch = lazy("torch")

NAMES = ("O", "B-city", "I-city", "B-person", "I-person")
SIZE, HIDDEN, TYPES = 3, 2, 3


def by_hand(cells, states, domain, known):
    """Jia and Zhang 2020, section 3.2, with loops over words and types."""
    found, hidden, cell = [], torch.zeros(HIDDEN), torch.zeros(HIDDEN)
    for word in states:
        entities = []
        for kind in range(TYPES):
            rows = slice(kind * 2 * HIDDEN, (kind + 1) * 2 * HIDDEN)
            gate_and_new = (
                cells.typed_input.weight[rows] @ word
                + cells.typed_input.bias[rows]
                + cells.typed_hidden.weight[rows] @ hidden
            )
            gate, new = gate_and_new[:HIDDEN].sigmoid(), gate_and_new[HIDDEN:].tanh()
            entities.append(gate * new + (1 - gate) * cell)
        whole = (
            cells.whole_input.weight @ word
            + cells.whole_input.bias
            + cells.whole_hidden.weight @ hidden
        )
        enter, leave = whole[:HIDDEN].sigmoid(), whole[HIDDEN : 2 * HIDDEN].sigmoid()
        centre = whole[2 * HIDDEN :].tanh()
        query, key = cells.query[domain].weight, cells.key[domain].weight
        scores = [
            (cells.weight[domain] * (query @ centre + key @ entity).tanh()).sum() if has else None
            for entity, has in zip(entities, known, strict=True)
        ]
        total = sum(score.exp() for score in scores if score is not None)
        chances = [0.0 if score is None else score.exp() / total for score in scores]
        composed = sum(a * entity for a, entity in zip(chances, entities, strict=True))
        cell = (1 - enter) * cell + enter * composed
        hidden = leave * cell.tanh()
        found.append((hidden, torch.stack(entities), torch.stack([*map(torch.as_tensor, chances)])))
    return [torch.stack(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize("domain", [0, 1])
def test_cells_by_hand(domain):
    torch.manual_seed(0)
    cells = multicell.Cells(SIZE, HIDDEN, TYPES)
    states, known = torch.randn(2, 4, SIZE), torch.tensor([True, False, True])
    found = cells(states, domain, known)
    for text in range(2):
        for ours, theirs in zip(found, by_hand(cells, states[text], domain, known), strict=True):
            assert torch.allclose(ours[text], theirs, atol=1e-6)


def test_both_directions_padding_and_losses():
    """A text scores the same in any batch; the loss is that of tags, of types and of attention."""
    torch.manual_seed(0)
    domains = [["city", "person"], ["person"]]
    head = multicell.MultiCell(SIZE, NAMES, domains, hidden=2 * HIDDEN, dropout=0.0)
    states, tags = torch.randn(2, 4, SIZE), torch.tensor([[1, 2, 0, 3], [3, 4, 0, 0]])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    kinds = torch.tensor([sequence.TARGET, sequence.SOURCE])
    total = head(sequence.Words(states, mask, tags, kinds))
    expected = torch.zeros(())
    for text, length in ((0, 4), (1, 2)):
        domain = int(kinds[text])
        known = torch.tensor([True, "city" in domains[domain], True])
        ahead = by_hand(head.forwards, states[text, :length], domain, known)
        back = by_hand(head.backwards, states[text, :length].flip(0), domain, known)
        back = [part.flip(0) for part in back]
        hidden = torch.cat([ahead[0], back[0]], -1)
        layer, crf = head.domains.layers[domain], head.domains.crfs[domain]
        emissions = layer(hidden)
        if domain:
            emissions[:, 1:3] = crf_module.FORBIDDEN  # the source has no cities
        gold = tags[text, :length]
        expected = expected - crf(emissions[None], gold[None]).sum()
        both = torch.cat([ahead[1], back[1]], -1)
        scores = (both * head.type_weights).sum(-1) + head.type_biases
        scores[:, ~known] = -torch.inf
        for place, tag in enumerate(gold.tolist()):
            kind = (tag + 1) // 2
            expected = expected - scores[place].log_softmax(0)[kind]
            expected = expected - ((ahead[2] + back[2])[place, kind] / 2).log()
    assert total.item() == pytest.approx(expected.item(), rel=1e-5)
    alone = head.tag(states[1:, :2], mask[1:, :2])
    together = head.tag(states, mask)
    assert alone[0][0] == together[0][1]
    assert torch.allclose(alone[1][0], together[1][1, :2], atol=1e-6)
