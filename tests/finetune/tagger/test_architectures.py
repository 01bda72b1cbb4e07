"""Encoders of transformers, built tiny: each is trained, tags, is saved and loaded."""

import pytest

from tests.helpers.lazy import lazy
from tests.helpers.toy import QUICK, rows

models = lazy("pretrain.training.models")
tagger = lazy("finetune.tagger.tagger")
torch = lazy("torch")
transformers = lazy("transformers")

NAMES = (
    *("albert", "bert", "big_bird", "camembert", "convbert", "deberta", "deberta-v2", "distilbert"),
    *("electra", "ernie", "funnel", "longformer", "megatron-bert", "mobilebert", "modernbert"),
    *("mpnet", "nystromformer", "rembert", "roberta", "xlm-roberta", "xlnet"),
)
IN_CI = ("modernbert", "roberta", "xlnet")
SIZES = {
    "hidden_size": 32,
    "embedding_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 70,
}
OWN = {
    "albert": {"num_hidden_groups": 1, "inner_group_num": 1},
    "big_bird": {"attention_type": "original_full"},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "distilbert": {"hidden_dim": 64},
    "funnel": {
        "block_sizes": [1, 1],
        "num_decoder_layers": 1,
        "d_inner": 64,
        "d_head": 16,
        "architectures": ["FunnelModel"],
    },
    "longformer": {"attention_window": 8},
    "mobilebert": {"intra_bottleneck_size": 32, "true_hidden_size": 32},
    "modernbert": {"local_attention": 16, "global_attn_every_n_layers": 2},
    "nystromformer": {"num_landmarks": 64, "segment_means_seq_len": 64},
    "rembert": {"input_embedding_size": 32, "output_embedding_size": 32},
    "xlnet": {"d_inner": 64, "d_head": 16},
}
NOT_OF = {"funnel": ["num_hidden_layers"], "xlnet": ["max_position_embeddings"]}
LONGEST = {
    **dict.fromkeys(("camembert", "longformer", "roberta", "xlm-roberta"), 69),
    "mpnet": 68,
    "xlnet": 512,
}
"""Sub-words that they take: in some, positions begin after that of the padding token."""


def tiny(name, base, folder):
    """A tiny encoder with the tokenizer of another one."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokens = {
        "pad_token_id": tokenizer.pad_token_id,
        "cls_token_id": tokenizer.cls_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    options = {**SIZES, **OWN.get(name, {}), **tokens, "vocab_size": len(tokenizer)}
    for key in NOT_OF.get(name, ()):
        del options[key]
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **options)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in IN_CI else pytest.mark.slow) for n in NAMES]
)
def test_trained_saved_and_loaded(name, base, tmp_path):
    made = tagger.Tagger(tiny(name, base, tmp_path / "base"), QUICK).fit(rows(48), rows(12, 48))
    losses = [line["loss"] for line in made.history if "loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    assert models.longest_input(made.model) == LONGEST.get(name, 70)
    made.save(tmp_path / "saved")
    again = tagger.Tagger.load(tmp_path / "saved", device="cpu")
    texts = [" ".join(row.tokens) for row in rows(9, 60)] + ["Ada lived in Ulm " * 60]
    for one, other in zip(made.predictions(texts), again.predictions(texts), strict=True):
        assert one.tags == other.tags
    assert len(one.words) == 240
    plain = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path / "saved")
    assert plain.config.id2label[0] == "O"
