/* A few sums through the C interface: two vectors that a budget holds one at a time beside the sum
 * that grows. Prints what it should be, and what it is. */
#include <stdint.h>
#include <stdio.h>
#include <tidepool/tidepool.h>

enum { COUNT = 4096, BYTES = COUNT * sizeof(float), VECTORS = 4, ROUNDS = 12 };

static void add(void* const* p) {
  const float* from = p[0];
  float* sum = p[1];
  for (int i = 0; i < COUNT; ++i) sum[i] += from[i];
}

static tp_status run(tp_session* session, float* out) {
  tp_block vectors[VECTORS], sum = 0;
  tp_status status = tp_session_malloc(session, BYTES, &sum);
  for (int i = 0; i < COUNT; ++i) out[i] = 0;
  if (status == TP_OK) status = tp_session_upload(session, sum, out, BYTES);
  for (int k = 0; k < VECTORS && status == TP_OK; ++k) {
    for (int i = 0; i < COUNT; ++i) out[i] = (float)(k + i);
    status = tp_session_malloc(session, BYTES, &vectors[k]);
    if (status == TP_OK) status = tp_session_upload(session, vectors[k], out, BYTES);
  }
  for (int round = 0; round < ROUNDS && status == TP_OK; ++round) {
    int32_t planned = 0;
    for (int k = 0; k < VECTORS && status == TP_OK; ++k) {
      const tp_block blocks[] = {vectors[k], sum}; /* reads one, updates one */
      void* const* pointers = NULL;
      status = tp_session_begin(session, "add", blocks, 1, 0, 1, &pointers);
      if (status != TP_OK) break;
      add(pointers);
      status = tp_session_end(session);
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
         (long long)info.device_peak, (VECTORS + 1) * (int)BYTES, (long long)info.moved,
         (long long)info.planned_ops);
  printf("the last sum is %.0f, and should be %.0f\n", (double)out[COUNT - 1],
         (double)ROUNDS * (VECTORS * (COUNT - 1) + VECTORS * (VECTORS - 1) / 2));
  tp_session_free(session);
  return 0;
}
