"""Names of models without pre-training, for --models."""

NAME = "bilstm"
"""The BiLSTM."""

WORDS = "words"
"""The words' vectors alone; the heads coach, cdlm and multicell have LSTMs."""

NAMES = (NAME, WORDS)
