// Models of text that read it character by character and are trained on the next one, after
// Karpathy's char-rnn (2015, karpathy.github.io/2015/05/21/rnn-effectiveness, and his repository of
// that name): layers of LSTM one above the other and a linear layer. A character is a byte.
//
// char-rnn's first layer takes one-hot vectors; here it takes rows of a table, which the layer of
// embeddings adds to rows for positions. Each sample starts from zeros, where char-rnn goes on with
// the state of the batch before. char-lstm is his larger recommendation (width 512 and three
// layers) with sequences of 100.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> char_rnn_models();

}  // namespace tidepool::nn
