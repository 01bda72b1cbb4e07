"""Coach, against its equations written out on small numbers."""

import copy
from dataclasses import replace

import pytest

from finetune.papers.words.words import description
from finetune.settings import FitSettings
from tests.helpers.lazy import lazy

coach = lazy("finetune.papers.words.coach")
sequence = lazy("finetune.papers.words.states")
torch = lazy("torch")

NAMES = ("O", "B-city", "I-city", "B-politicalparty", "I-politicalparty")
SIZE = 4


def head_of(**more):
    torch.manual_seed(0)
    head = coach.Coach(SIZE, NAMES, [1, 2], layers=1, hidden=6, dropout=0.0, **more)
    head.descriptions.copy_(torch.randn(3, SIZE))
    return head


def batch(tags, lengths):
    states, tags = torch.randn(len(tags), len(tags[0]), SIZE), torch.tensor(tags)
    mask = torch.arange(tags.shape[1]) < torch.tensor(lengths).unsqueeze(1)
    return sequence.Words(states, mask, tags, torch.zeros(len(tags), dtype=torch.long))


def test_descriptions():
    assert description("politicalparty") == ["political", "party"]
    assert description("SportsTeam") == ["sports", "team"]
    assert description("Gene_or_gene_product") == ["gene", "or", "gene", "product"]
    assert description("misc") == ["miscellaneous"]
    assert description("LOC") == ["location"]
    assert description("person") == ["person"]


def test_loss_by_hand():
    head = head_of()
    words = batch([[1, 2, 0, 3], [0, 3, 4, 0]], [4, 3])
    total = head(words)
    expected = torch.zeros(())
    types = torch.stack([head.descriptions[0], head.descriptions[1] + head.descriptions[2]])
    golds = (([1, 2, 0, 1], [(0, 2, 0), (3, 4, 1)]), ([0, 1, 2], [(1, 3, 1)]))
    for text, (bio, spans) in enumerate(golds):
        hidden = head.lstm(words.states[text : text + 1, : len(bio)])[0]
        expected = expected - head.crf(head.linear(hidden), torch.tensor([bio])).sum()
        for first, end, kind in spans:
            mention = head.mention_lstm(hidden[:, first:end])[0].sum(1)[0]
            expected = expected - (types @ mention).log_softmax(0)[kind]
    assert total.item() == pytest.approx(expected.item(), rel=1e-5)


def test_templates_by_hand():
    """Near to the right template, far from that with the other type, in both directions."""
    head = head_of(template_weight=0.5, template_steps=0)
    words = batch([[0, 1, 2, 3]], [4])
    with_templates, head._weight = head(words), 0.0
    without = head(words)
    states, told = words.states[0], head.descriptions
    city, party = told[:1], told[1:]

    def pooled(look, found):
        return (look(found).softmax(0) * found).sum(0)

    own = pooled(head.look_at_text, head.lstm(states[None])[0][0])
    expected = 0.0
    for weight, parts in ((1.0, (states[:1], city, party)), (-0.5, (states[:1], party, city))):
        template = pooled(head.look_at_template, head.template_lstm(torch.cat(parts)[None])[0][0])
        expected += 2 * weight * ((own - template) ** 2).mean().item()
    assert (with_templates - without).item() == pytest.approx(expected, rel=1e-4)


def test_tags_and_probabilities():
    head = head_of().eval()
    words = batch([[0] * 5, [0] * 5], [5, 2])
    with torch.no_grad():
        head.linear.bias.copy_(torch.tensor([0.0, 1.0, 1.0]))
        tags, chances = head.tag(words.states, words.mask)
    assert [len(row) for row in tags] == [5, 2]
    assert chances.shape == (2, 5, 5)
    assert torch.allclose(chances[words.mask].sum(-1), torch.ones(7), atol=1e-5)
    bio = torch.tensor([[1, 2, 0, 2, 1], [2, 1, 1, 1, 1]])
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    assert coach.spans_of(bio, mask) == [(0, 0, 2), (0, 4, 5), (1, 1, 2)]


def test_the_parts_are_the_whole():
    head = head_of(template_weight=0.5, template_steps=0)
    words = batch([[1, 2, 0, 3], [0, 3, 4, 0]], [4, 3])
    losses = {}
    for head.part in ("both", "mentions", "types"):
        losses[head.part] = head(words).item()
    assert losses["both"] == pytest.approx(losses["mentions"] + losses["types"], rel=1e-5)
    assert min(losses.values()) > 0


def test_separate_steps_take_whole_batches():
    settings = FitSettings(separate_steps=True, accumulation=2)  # of another head
    with pytest.raises(ValueError, match="--accumulation: give --no-separate-steps"):
        replace(settings, head="coach")
    replace(settings, head="coach", separate_steps=False)


def test_separate_steps_by_hand():
    """One epoch of two sentences, against steps of Adam written out, as in the released code."""
    fitting = pytest.importorskip("finetune.tagger.fitting")
    from finetune.papers.words import bilstm
    from nerbert.text.columns import Sentence
    from nerbert.text.tags import LabelSet

    rows = [
        Sentence(["In", "Oslo", "the", "Greens", "win"], ["O", "B-a", "O", "B-b", "O"]),
        Sentence(["They", "met", "in", "Rome"], ["O", "O", "O", "B-a"]),
        Sentence(["It", "rains"], ["O", "O"]),
    ]
    labels = LabelSet(("a", "b"))
    settings = FitSettings(
        head="coach", spelling="none", word_size=6, word_hidden=6, word_dropout=0.0,
        separate_steps=True, max_grad_norm=0, learning_rate=0.01, batch_size=3, epochs=1,
        least_steps=1, forget_rare=False, weight_decay=0,
    )  # fmt: skip
    torch.manual_seed(0)
    tokenizer, model = bilstm.build("words", rows, labels, settings)
    head = coach.CoachHead.add(model, settings, tokenizer, labels, [["a", "b"], []])
    start = copy.deepcopy(model)
    splits = {"train": fitting.features(rows, labels, tokenizer, 512, "here")}
    fitting.trained(head, labels, settings, splits, kinds=[0, 0, 0])

    batch = tokenizer([row.tokens for row in rows], is_split_into_words=True, padding=True)
    ids, mask = torch.tensor(batch["input_ids"]), torch.tensor(batch["attention_mask"])
    golds = [[0, 1, 0, 1, 0], [0, 0, 0, 1], [0, 0]]
    types = [{1: 0, 3: 1}, {3: 0}, {}]

    def after(order):
        """The weights after the steps; `order` is that of the texts in the batch."""
        other = copy.deepcopy(start)
        head, adam = other.words_head, torch.optim.Adam(other.parameters(), 0.01)
        first = ids.eq(other.config.boundary_id) & mask.bool()

        def hidden(text):
            states = other(input_ids=ids, attention_mask=mask).logits[text][first[text]]
            return head.lstm(states[None])[0]

        def learn(loss):
            adam.zero_grad()
            loss.backward()
            adam.step()

        paths = [-head.crf(head.linear(hidden(n)), torch.tensor([golds[n]])).sum() for n in order]
        learn(sum(paths) / 3)
        for text in order:
            if types[text]:
                read = hidden(text)
                ends = [head.mention_lstm(read[:, p : p + 1])[0].sum(1)[0] for p in types[text]]
                gold = torch.tensor([*types[text].values()])
                scores = torch.stack(ends) @ head.descriptions.T
                learn(torch.nn.functional.cross_entropy(scores, gold))
        return dict(other.named_parameters())

    def same(weights):
        ours = dict(model.named_parameters())
        return all(
            torch.allclose(weight, ours[name], atol=1e-5) for name, weight in weights.items()
        )

    assert not same(dict(start.named_parameters()))
    assert same(after([0, 1, 2])) or same(after([1, 0, 2]))
