// Transformers on text: encoders that are trained to find masked tokens, as BERT (Devlin et al.
// 2019), and decoders that are trained on the next one, as GPT-2 (Radford et al. 2019). Weights
// start with a deviation of 0.02; the output uses the table of the embedding.
//
// bert-base is Hugging Face's BertForMaskedLM without segment embeddings (a sample is one segment),
// which are 1,536 of its 109,514,298 parameters; there is no pooler, as there. gpt2-small has all
// parameters of the published one, 124,439,808. GELU is exact in both, where GPT-2 takes its
// approximation by tanh; dropout is on embeddings and branches, not on attention weights; GPT-2's
// smaller start of the projections back to the sum is left out. Longer sequences than a model was
// published for get more positions.
#pragma once

#include <vector>

#include "nn/models/model.h"

namespace tidepool::nn {

std::vector<ModelInfo> transformer_models();

}  // namespace tidepool::nn
