"""Trains on a corpus folder with transformers and datasets alone; started by test_launch.py."""

import json
import sys

from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForTokenClassification,
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

corpus, output = sys.argv[1:]
sets = load_dataset(corpus)
tags = sets["train"].features["ner_tags"].feature.names
words = sorted({word for row in sets["train"]["tokens"] for word in row})
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*special, *words]))}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")


def tokenize_and_align(rows):
    encoding = tokenizer(rows["tokens"], is_split_into_words=True, truncation=True, max_length=128)
    encoding["labels"] = [
        [-100 if word is None else row[word] for word in encoding.word_ids(index)]
        for index, row in enumerate(rows["ner_tags"])
    ]
    return encoding


data = sets.map(tokenize_and_align, batched=True, remove_columns=sets["train"].column_names)
config = BertConfig(
    vocab_size=len(vocabulary),
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=128,
    num_labels=len(tags),
    id2label=dict(enumerate(tags)),
)
arguments = TrainingArguments(
    output_dir=output,
    max_steps=40,
    logging_steps=1,
    learning_rate=1e-3,
    per_device_train_batch_size=32,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
    save_strategy="no",
    seed=1,
)
trainer = Trainer(
    BertForTokenClassification(config),
    arguments,
    train_dataset=data["train"],
    eval_dataset=data["validation"],
    data_collator=DataCollatorForTokenClassification(tokenizer),
)
trainer.train()
losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
ours = [name for name in sys.modules if name.split(".")[0] in ("pretrain", "pipeline", "ontology")]
print(json.dumps([sum(losses[:5]) / 5, sum(losses[-5:]) / 5, tags, ours]))
