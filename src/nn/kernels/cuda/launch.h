// Launchers of this project's own device code, all asynchronous on `stream`. Arrays are float32 in
// plain layout unless said otherwise, start at multiples of 16 bytes, and may be the same array
// where an op works in place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tidepool::nn {
struct ControlBlock;
}

namespace tidepool::nn::device_code {

void relu_forward(const float* x, float* y, std::int64_t count, cudaStream_t stream);
void relu_backward(const float* y, const float* dy, float* dx, std::int64_t count,
                   cudaStream_t stream);
void gelu_forward(const float* x, float* y, std::int64_t count, cudaStream_t stream);
void gelu_backward(const float* x, const float* dy, float* dx, std::int64_t count,
                   cudaStream_t stream);
/// y = a + factor * b
void add(const float* a, const float* b, float factor, float* y, std::int64_t count,
         cudaStream_t stream);

struct Dropout {
  std::uint64_t random_key = 0;
  std::uint32_t threshold = 0;
  float scale = 1;
  std::int64_t first_element = 0;  ///< index of element 0 in the full batch
};
/// Forward, and backward in place. `mask` may be null.
void dropout(const Dropout& dropout, const ControlBlock* control, const float* x, float* y,
             std::uint8_t* mask, std::int64_t count, cudaStream_t stream);
void dropout_backward(float scale, const std::uint8_t* mask, const float* dy, float* dx,
                      std::int64_t count, cudaStream_t stream);

void sgd(float momentum, float weight_decay, const ControlBlock* control, const float* gradient,
         float* weight, float* velocity, std::int64_t count, cudaStream_t stream);

struct Adamw {
  float beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
};
void adamw(const Adamw& settings, const ControlBlock* control, const float* gradient, float* weight,
           float* m, float* v, std::int64_t count, cudaStream_t stream);

/// y[row][column] = bias[column]
void broadcast_rows(const float* bias, float* y, std::int64_t rows, std::int64_t columns,
                    cudaStream_t stream);
/// sums[column] = sum over rows, always in the same order.
void sum_rows(const float* x, float* sums, std::int64_t rows, std::int64_t columns,
              cudaStream_t stream);

/// Images of `channels` planes of `plane` elements each.
struct Planes {
  std::int64_t images = 0, channels = 0, plane = 0;
};
/// Bytes of partial sums the two below need; a function of the shape alone, as the order of
/// summation is.
std::int64_t batch_norm_workspace(const Planes& shape);
void batch_norm_forward(const Planes& shape, float epsilon, const float* x, const float* scale,
                        const float* shift, float* y, float* mean, float* variance, void* workspace,
                        cudaStream_t stream);
void batch_norm_backward(const Planes& shape, float epsilon, const float* x, const float* dy,
                         const float* mean, const float* variance, const float* scale, float* dx,
                         float* dscale, float* dshift, void* workspace, cudaStream_t stream);
void batch_norm_statistics(float momentum, float unbiased, const float* mean, const float* variance,
                           float* running_mean, float* running_variance, std::int64_t channels,
                           cudaStream_t stream);
/// inverse = 1 / sqrt(variance + epsilon)
void inverse_deviation(float epsilon, const float* variance, float* inverse, std::int64_t count,
                       cudaStream_t stream);
/// x *= factor
void scale(float factor, float* x, std::int64_t count, cudaStream_t stream);

/// y += bias of its channel
void add_to_channels(const Planes& shape, const float* bias, float* y, cudaStream_t stream);
/// Always in the same order.
void sum_channels(const Planes& shape, const float* x, float* sums, cudaStream_t stream);

/// `rows` rows of `width` elements; a row begins so many elements behind the one before. The arrays
/// may start anywhere.
struct Rows {
  std::int64_t rows = 0, width = 0, from_pitch = 0, to_pitch = 0;
};
void copy_rows(const Rows& rows, const float* from, float* to, cudaStream_t stream);

struct Pooling {
  int planes = 0;  ///< images times channels
  int height = 0, width = 0, out_height = 0, out_width = 0;
  int window_height = 0, window_width = 0, stride = 1, padding_height = 0, padding_width = 0;
};
void max_pool_forward(const Pooling& pooling, const float* x, float* y, std::uint8_t* index,
                      cudaStream_t stream);
void max_pool_backward(const Pooling& pooling, const float* dy, const std::uint8_t* index,
                       float* dx, cudaStream_t stream);

/// Every tensor has less than 2^31 elements.
struct Convolution {
  int images = 0, channels = 0, height = 0, width = 0;
  int filters = 0, out_height = 0, out_width = 0;
  int window_height = 0, window_width = 0, stride = 1, padding_height = 0, padding_width = 0;
  int groups = 1;  ///< of channels and filters
};
void convolution_forward(const Convolution& shape, const float* x, const float* weight, float* y,
                         cudaStream_t stream);
void convolution_backward_data(const Convolution& shape, const float* dy, const float* weight,
                               float* dx, cudaStream_t stream);
/// Bytes; a function of the shape alone, as the order of summation is.
std::int64_t convolution_backward_weights_workspace(const Convolution& shape);
void convolution_backward_weights(const Convolution& shape, const float* x, const float* dy,
                                  float* dweight, float* workspace, cudaStream_t stream);

/// loss = sum over samples with a label / full_batch. `parts` holds `samples` doubles.
void cross_entropy(const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, double full_batch, double* parts, float* loss,
                   cudaStream_t stream);
/// The same over pixels: logits are images with a channel for each class, labels one for each
/// pixel. `parts` holds so many doubles; a function of the shape alone, as the order of summation
/// is.
std::int64_t pixel_cross_entropy_parts(const Planes& shape);
void pixel_cross_entropy(const Planes& shape, const float* logits, const std::int32_t* labels,
                         double full_batch, double* parts, float* loss, cudaStream_t stream);
/// Of both: a matrix of logits has planes of one element.
void softmax_loss_backward(const Planes& shape, const float* probabilities,
                           const std::int32_t* labels, float full_batch, float* dlogits,
                           cudaStream_t stream);
/// Adds to *count, which starts at 0.
void count_correct(const float* logits, const std::int32_t* labels, std::int64_t samples,
                   std::int64_t classes, std::int32_t* count, cudaStream_t stream);
void count_correct_pixels(const Planes& shape, const float* logits, const std::int32_t* labels,
                          std::int32_t* count, cudaStream_t stream);

/// x has planes of height x width, y of `factor` times as much in both directions.
struct Upsampling {
  std::int64_t planes = 0;  ///< images times channels
  std::int64_t height = 0, width = 0, factor = 1;
  bool bilinear = false;
};
void upsample_forward(const Upsampling& upsampling, const float* x, float* y, cudaStream_t stream);
/// Always in the same order.
void upsample_backward(const Upsampling& upsampling, const float* dy, float* dx,
                       cudaStream_t stream);

struct Embedding {
  std::int64_t samples = 0, sequence = 0;
  std::int64_t vocabulary = 0, positions = 0, width = 0;
};
void embedding_forward(const Embedding& embedding, const std::int32_t* tokens, const float* table,
                       const float* positions, float* y, cudaStream_t stream);
void embedding_backward(const Embedding& embedding, const std::int32_t* tokens, const float* dy,
                        float* dtable, float* dpositions, cudaStream_t stream);

struct LayerNorm {
  std::int64_t rows = 0, width = 0;
  float epsilon = 0;
};
void layer_norm_forward(const LayerNorm& norm, const float* x, const float* scale,
                        const float* shift, float* y, float* mean, float* variance,
                        cudaStream_t stream);
void layer_norm_backward(const LayerNorm& norm, const float* x, const float* dy, const float* mean,
                         const float* variance, const float* scale, float* dx, float* dscale,
                         float* dshift, cudaStream_t stream);

/// Of `rows` rows of `tokens` numbers, one matrix of tokens x tokens behind the other.
void attention_softmax(const float* s, float* p, std::int64_t rows, std::int64_t tokens,
                       bool causal, cudaStream_t stream);
void attention_softmax_backward(const float* p, const float* dp, float* ds, std::int64_t rows,
                                std::int64_t tokens, cudaStream_t stream);

struct KMeans {
  std::int64_t points = 0, clusters = 0, width = 0;
};
/// norms[k] = the square of the length of centroid k
void k_means_norms(const KMeans& shape, const float* centroids, float* norms, cudaStream_t stream);
/// `products` has the products of each point with each centroid, in float. Those that are so near
/// that these may err decide by distances in double.
void k_means_nearest(const KMeans& shape, const float* points, const float* centroids,
                     const float* products, const float* norms, std::int32_t* nearest,
                     float* distances, cudaStream_t stream);
/// `adds`: to what the arrays have; always in the order of the points.
void k_means_sums(const KMeans& shape, bool adds, const float* points, const std::int32_t* nearest,
                  float* sums, std::int32_t* counts, cudaStream_t stream);
/// Copies `nearest`, too.
void k_means_inertia(std::int64_t points, bool adds, const float* distances,
                     const std::int32_t* nearest, float* inertia, std::int32_t* assignments,
                     cudaStream_t stream);
void k_means_update(const KMeans& shape, const float* sums, const std::int32_t* counts,
                    float* centroids, cudaStream_t stream);
/// Arrays as the ops of LSTM have them; what is made of gates has `pitch` numbers a place.
struct Lstm {
  std::int64_t samples = 0, steps = 0, hidden = 0, pitch = 0;
};
/// Of all samples at one step: gates, cells and y, of what goes into the gates but for the bias.
void lstm_cells(const Lstm& lstm, std::int64_t step, const float* bias, float* reserve, float* y,
                cudaStream_t stream);
/// The gradients of what goes into the gates at one step, and in `dc` (samples x hidden) that of c
/// of the step before. `dh` is the gradient of y from the next step; neither is read at the last.
void lstm_cells_backward(const Lstm& lstm, std::int64_t step, const float* dy, const float* dh,
                         const float* reserve, float* dgates, float* dc, cudaStream_t stream);
/// y of the step before each place; zeros at the first.
void lstm_previous(const Lstm& lstm, const float* y, float* previous, cudaStream_t stream);
/// Over all places, always in the same order.
void lstm_sum_gates(const Lstm& lstm, const float* dgates, float* dbias, cudaStream_t stream);

/// Loads the code of this folder's .cu files.
void load_elementwise();
void load_reductions();
void load_pooling();
void load_convolution();
void load_embedding();
void load_layer_norm();
void load_attention();
void load_upsample();
void load_k_means();
void load_lstm();

}  // namespace tidepool::nn::device_code
