//===- access_hooks.cpp - Memory accesses that the compiler reports -------===//
//
// Defines the functions that code compiled with -fsanitize=thread,alignment
// calls, instead of the sanitizers' runtime. Atomics are executed but not
// checked, because kernels use none.
//
//===----------------------------------------------------------------------===//

#include <cstdint>

#include "tests/emulator/races.h"

using mtplan::emulator::misplaced;
using mtplan::emulator::touched;

// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming)
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void * /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void ** /*place*/, void * /*table*/) {}
void __tsan_vptr_read(void ** /*place*/) {}

void __tsan_read1(const void *data) { touched(data, 1, false); }
void __tsan_read2(const void *data) { touched(data, 2, false); }
void __tsan_read4(const void *data) { touched(data, 4, false); }
void __tsan_read8(const void *data) { touched(data, 8, false); }
void __tsan_read16(const void *data) { touched(data, 16, false); }
void __tsan_write1(const void *data) { touched(data, 1, true); }
void __tsan_write2(const void *data) { touched(data, 2, true); }
void __tsan_write4(const void *data) { touched(data, 4, true); }
void __tsan_write8(const void *data) { touched(data, 8, true); }
void __tsan_write16(const void *data) { touched(data, 16, true); }

void __tsan_unaligned_read2(const void *data) { touched(data, 2, false); }
void __tsan_unaligned_read4(const void *data) { touched(data, 4, false); }
void __tsan_unaligned_read8(const void *data) { touched(data, 8, false); }
void __tsan_unaligned_read16(const void *data) { touched(data, 16, false); }
void __tsan_unaligned_write2(const void *data) { touched(data, 2, true); }
void __tsan_unaligned_write4(const void *data) { touched(data, 4, true); }
void __tsan_unaligned_write8(const void *data) { touched(data, 8, true); }
void __tsan_unaligned_write16(const void *data) { touched(data, 16, true); }

void __tsan_read_range(const void *data, unsigned long bytes) {
  touched(data, bytes, false);
}
void __tsan_write_range(const void *data, unsigned long bytes) {
  touched(data, bytes, true);
}

void __ubsan_handle_type_mismatch_v1(void * /*where*/, void *data) {
  misplaced(data);
}

/// Defines the atomics that the host code of the same sources uses.
#define MTPLAN_ATOMIC(bits, type)                                              \
  type __tsan_atomic##bits##_load(const type *at, int) {                       \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                              \
  }                                                                            \
  void __tsan_atomic##bits##_store(type *at, type value, int) {                \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                             \
  }                                                                            \
  type __tsan_atomic##bits##_exchange(type *at, type value, int) {             \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                   \
  }                                                                            \
  type __tsan_atomic##bits##_fetch_add(type *at, type value, int) {            \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                    \
  }                                                                            \
  type __tsan_atomic##bits##_fetch_sub(type *at, type value, int) {            \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                    \
  }
MTPLAN_ATOMIC(8, std::uint8_t)
MTPLAN_ATOMIC(32, std::uint32_t)
MTPLAN_ATOMIC(64, std::uint64_t)

} // extern "C"
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming)
