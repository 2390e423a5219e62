/* Counts the bytes of large blocks in a process, and refuses above a limit. Preloaded
 * (LD_PRELOAD), by `tidepool-torch run` and by the tests: what they say of bytes is then the
 * allocator's word, not the package's own accounting. Blocks below 8 KiB are not counted. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

enum { COUNTED = 8 << 10, REFUSED = 64 << 10 };
static atomic_long live, peak, highest, limit, refused;

static void raise_to(atomic_long* most, long now) {
  long before = atomic_load(most);
  while (now > before && !atomic_compare_exchange_weak(most, &before, now)) {
  }
}

static void add(void* block) {
  if (block == NULL) return;
  const long size = (long)malloc_usable_size(block);
  if (size < COUNTED) return;
  const long now = atomic_fetch_add(&live, size) + size;
  raise_to(&peak, now);
  raise_to(&highest, now);
}

static void take(void* block) {
  if (block == NULL) return;
  const long size = (long)malloc_usable_size(block);
  if (size >= COUNTED) atomic_fetch_sub(&live, size);
}

static int is_refused(size_t size) {
  const long most = atomic_load(&limit);
  if (most == 0 || size < REFUSED || atomic_load(&live) + (long)size <= most) return 0;
  atomic_fetch_add(&refused, 1);
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) {
  if (is_refused(size)) return NULL;
  void* block = __libc_malloc(size);
  add(block);
  return block;
}
void* calloc(size_t count, size_t size) {
  void* block = __libc_calloc(count, size);
  add(block);
  return block;
}
void* realloc(void* old, size_t size) {
  take(old);
  void* block = __libc_realloc(old, size);
  add(block != NULL || size == 0 ? block : old);
  return block;
}
void free(void* block) {
  take(block);
  __libc_free(block);
}
void* memalign(size_t alignment, size_t size) {
  if (is_refused(size)) return NULL;
  void* block = __libc_memalign(alignment, size);
  add(block);
  return block;
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  void* block = memalign(alignment, size);
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}

long tp_hook_live(void) { return atomic_load(&live); }
long tp_hook_peak(void) { return atomic_load(&peak); }
void tp_hook_restart(void) { atomic_store(&peak, atomic_load(&live)); }
/* A peak of its own, for who watches a whole training, in which single ops are measured too. */
long tp_hook_highest(void) { return atomic_load(&highest); }
void tp_hook_forget_highest(void) { atomic_store(&highest, atomic_load(&live)); }
void tp_hook_limit(long bytes) { atomic_store(&limit, bytes); }
long tp_hook_refused(void) { return atomic_load(&refused); }
