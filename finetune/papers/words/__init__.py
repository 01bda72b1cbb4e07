"""Taggers on word vectors: BiLSTM-CRF, Coach, CDLM, multi-cell LSTM."""
