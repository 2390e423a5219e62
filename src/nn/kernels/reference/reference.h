// The reference kernels: one plain function per kind of op, for any layout, written to be read. No
// workspace, one thread; sums are kept in double. They are the oracle of the kernel tests. A kind
// of device op without one does not compile.
#pragma once

#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::reference {

void run(const ConvForward& op, const OpDesc& desc, Pointers pointers);
void run(const ConvBackwardData& op, const OpDesc& desc, Pointers pointers);
void run(const ConvBackwardWeights& op, const OpDesc& desc, Pointers pointers);
void run(const ChannelBiasForward& op, const OpDesc& desc, Pointers pointers);
void run(const ChannelBiasBackward& op, const OpDesc& desc, Pointers pointers);
void run(const ConcatForward& op, const OpDesc& desc, Pointers pointers);
void run(const ConcatBackward& op, const OpDesc& desc, Pointers pointers);
void run(const Reorder& op, const OpDesc& desc, Pointers pointers);
void run(const BatchNormForward& op, const OpDesc& desc, Pointers pointers);
void run(const BatchNormBackward& op, const OpDesc& desc, Pointers pointers);
void run(const BatchNormInference& op, const OpDesc& desc, Pointers pointers);
void run(const BatchNormStatistics& op, const OpDesc& desc, Pointers pointers);
void run(const ReluForward& op, const OpDesc& desc, Pointers pointers);
void run(const ReluBackward& op, const OpDesc& desc, Pointers pointers);
void run(const GeluForward& op, const OpDesc& desc, Pointers pointers);
void run(const GeluBackward& op, const OpDesc& desc, Pointers pointers);
void run(const AddForward& op, const OpDesc& desc, Pointers pointers);
void run(const MaxPoolForward& op, const OpDesc& desc, Pointers pointers);
void run(const MaxPoolBackward& op, const OpDesc& desc, Pointers pointers);
void run(const AvgPoolForward& op, const OpDesc& desc, Pointers pointers);
void run(const AvgPoolBackward& op, const OpDesc& desc, Pointers pointers);
void run(const DropoutForward& op, const OpDesc& desc, Pointers pointers);
void run(const DropoutBackward& op, const OpDesc& desc, Pointers pointers);
void run(const LinearForward& op, const OpDesc& desc, Pointers pointers);
void run(const LinearBackwardData& op, const OpDesc& desc, Pointers pointers);
void run(const LinearBackwardWeights& op, const OpDesc& desc, Pointers pointers);
void run(const ProjectionForward& op, const OpDesc& desc, Pointers pointers);
void run(const ProjectionBackwardWeights& op, const OpDesc& desc, Pointers pointers);
void run(const EmbeddingForward& op, const OpDesc& desc, Pointers pointers);
void run(const EmbeddingBackward& op, const OpDesc& desc, Pointers pointers);
void run(const LstmForward& op, const OpDesc& desc, Pointers pointers);
void run(const LstmBackwardData& op, const OpDesc& desc, Pointers pointers);
void run(const LstmBackwardWeights& op, const OpDesc& desc, Pointers pointers);
void run(const LayerNormForward& op, const OpDesc& desc, Pointers pointers);
void run(const LayerNormBackward& op, const OpDesc& desc, Pointers pointers);
void run(const AttentionScores& op, const OpDesc& desc, Pointers pointers);
void run(const AttentionMix& op, const OpDesc& desc, Pointers pointers);
void run(const AttentionMixTransposed& op, const OpDesc& desc, Pointers pointers);
void run(const AttentionSoftmaxForward& op, const OpDesc& desc, Pointers pointers);
void run(const AttentionSoftmaxBackward& op, const OpDesc& desc, Pointers pointers);
void run(const SoftmaxLossForward& op, const OpDesc& desc, Pointers pointers);
void run(const SoftmaxLossBackward& op, const OpDesc& desc, Pointers pointers);
void run(const SquaredErrorForward& op, const OpDesc& desc, Pointers pointers);
void run(const SquaredErrorBackward& op, const OpDesc& desc, Pointers pointers);
void run(const CountCorrect& op, const OpDesc& desc, Pointers pointers);
void run(const UpsampleForward& op, const OpDesc& desc, Pointers pointers);
void run(const UpsampleBackward& op, const OpDesc& desc, Pointers pointers);
void run(const KMeansAssign& op, const OpDesc& desc, Pointers pointers);
void run(const KMeansAccumulate& op, const OpDesc& desc, Pointers pointers);
void run(const KMeansUpdate& op, const OpDesc& desc, Pointers pointers);
void run(const SgdUpdate& op, const OpDesc& desc, Pointers pointers);
void run(const AdamwUpdate& op, const OpDesc& desc, Pointers pointers);
inline void run(const Hold& /*op*/, const OpDesc& /*desc*/, Pointers /*pointers*/) {}

}  // namespace tidepool::nn::reference
