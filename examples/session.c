/* Sums of vectors through the C interface, in half of the memory that they take. */
#include <stdint.h>
#include <stdio.h>
#include <tidepool/tidepool.h>

enum { COUNT = 4096, BYTES = COUNT * sizeof(float), VECTORS = 4, ROUNDS = 12 };

/* The half of the first block goes to the second. An op of each vector has a name of its own: names
 * tell the ops of an iteration apart. */
static tp_status half_of(tp_session* session, int k, const tp_block* blocks) {
  static const char* const names[VECTORS] = {"half of 0", "half of 1", "half of 2", "half of 3"};
  void* const* pointers = NULL;
  const tp_status status = tp_session_begin(session, names[k], blocks, 1, 1, 0, &pointers);
  if (status != TP_OK) return status;
  const float* from = pointers[0];
  float* to = pointers[1];
  for (int i = 0; i < COUNT; ++i) to[i] = from[i] / 2;
  return tp_session_end(session);
}

static int32_t add(void* user, void* const* pointers) {
  const float* from = pointers[0];
  float* sum = pointers[1];
  (void)user;
  for (int i = 0; i < COUNT; ++i) sum[i] += from[i];
  return 0;
}

static tp_status add_half_of(tp_session* session, int k, tp_block vector, tp_block sum) {
  tp_block half = 0;
  tp_status status = tp_session_malloc(session, BYTES, &half);
  if (status != TP_OK) return status;
  status = half_of(session, k, (tp_block[]){vector, half});
  if (status != TP_OK) return status;
  status = tp_session_exec(session, "add", (tp_block[]){half, sum}, 1, 0, 1, add, NULL, 0);
  if (status != TP_OK) return status;
  return tp_session_free_block(session, half);
}

static tp_status run(tp_session* session, float* out) {
  tp_block vectors[VECTORS], sum = 0;
  int32_t planned = 0;
  tp_status status = tp_session_malloc(session, BYTES, &sum);
  for (int i = 0; i < COUNT; ++i) out[i] = 0;
  if (status == TP_OK) status = tp_session_upload(session, sum, out, BYTES);
  for (int k = 0; k < VECTORS && status == TP_OK; ++k) {
    for (int i = 0; i < COUNT; ++i) out[i] = (float)(k + i);
    status = tp_session_malloc(session, BYTES, &vectors[k]);
    if (status == TP_OK) status = tp_session_upload(session, vectors[k], out, BYTES);
  }
  for (int round = 0; round < ROUNDS && status == TP_OK; ++round) {
    for (int k = 0; k < VECTORS && status == TP_OK; ++k) {
      status = add_half_of(session, k, vectors[k], sum);
    }
    if (status == TP_OK && round == ROUNDS / 2) status = tp_session_plan_now(session, &planned);
  }
  return status == TP_OK ? tp_session_download(session, sum, out, BYTES) : status;
}

int main(void) {
  static float out[COUNT];
  tp_session* session = NULL;
  tp_session_info info = TP_INIT(tp_session_info);
  tp_session_options options = TP_INIT(tp_session_options);
  tp_error_info error = TP_INIT(tp_error_info);
  options.budget = 3 * BYTES;
  options.evaluation_limit = 100;
  options.plan_when_asked = 1;
  if (tp_session_make(&options, &session) != TP_OK || run(session, out) != TP_OK) {
    tp_session_error(&error);
    fprintf(stderr, "%s\n", error.message);
    tp_session_free(session);
    return 1;
  }
  tp_session_report(session, &info);
  printf("%lld of %d bytes used at most, %lld moved, %lld ops by a plan\n",
         (long long)info.device_peak, (VECTORS + 2) * (int)BYTES, (long long)info.moved,
         (long long)info.planned_ops);
  printf("the last sum is %.0f, and should be %.0f\n", (double)out[COUNT - 1],
         ROUNDS * (VECTORS * (COUNT - 1) + VECTORS * (VECTORS - 1) / 2.0) / 2);
  tp_session_free(session);
  return 0;
}
