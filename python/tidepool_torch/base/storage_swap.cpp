// What torch 2.12 has and 2.7 to 2.11 have not: a storage gives its bytes to another, and the text
// of an error that goes again. Functions over `storage._cdata`: neither Python's headers nor a
// GPU's are needed.
#include <c10/core/StorageImpl.h>

namespace {

// The language lets an explicit instantiation name a private member.
template <auto Member>
struct Opened {
  friend bool& throws(c10::StorageImpl& storage) { return storage.*Member; }
};
bool& throws(c10::StorageImpl& storage);
template struct Opened<&c10::StorageImpl::throw_on_immutable_data_ptr_>;

c10::StorageImpl& of(void* storage) { return *static_cast<c10::StorageImpl*>(storage); }

/// Sets the bytes that a storage has anew, which looks at its flags.
void refresh(c10::StorageImpl& storage) {
  c10::DataPtr same = std::move(storage._mutable_data_ptr_no_checks());
  storage.set_data_ptr_noswap(std::move(same));
}

}  // namespace

extern "C" {

/// Swaps bytes, size, allocator and flags. Returns 1 where UntypedStorage._swap_data_ptr_ would
/// refuse: for other devices, and for other sizes of which none is 0.
int tidepool_swap(void* one, void* other) {
  c10::StorageImpl &a = of(one), &b = of(other);
  const auto size_of_a = a.nbytes(), size_of_b = b.nbytes();
  const bool fits = size_of_a == size_of_b || size_of_a == 0 || size_of_b == 0;
  if (!fits || a.device() != b.device()) return 1;
  std::swap(a._mutable_data_ptr_no_checks(), b._mutable_data_ptr_no_checks());
  a.set_nbytes(size_of_b);
  b.set_nbytes(size_of_a);
  auto *allocator_of_a = a.allocator(), *allocator_of_b = b.allocator();
  const bool a_is_resizable = a.resizable(), b_is_resizable = b.resizable();
  a.set_allocator(allocator_of_b);
  b.set_allocator(allocator_of_a);
  a.set_resizable(b_is_resizable);
  b.set_resizable(a_is_resizable);
  std::swap(throws(a), throws(b));
  refresh(a);
  refresh(b);
  return 0;
}

/// From now on whoever asks for the bytes gets an error with this text.
void tidepool_say_away(void* storage, const char* text) {
  of(storage).release_data_and_set_meta_custom_data_ptr_error_msg_(std::string(text));
}

void tidepool_say_here(void* storage) {
  throws(of(storage)) = false;
  refresh(of(storage));
}
}
