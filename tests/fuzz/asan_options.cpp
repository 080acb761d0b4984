//===- asan_options.cpp - AddressSanitizer with the packaged LLVM ---------===//
//
// LLVM's allocators poison their memory in headers that we compile, but the
// packaged LLVM library, built without a sanitizer, never unpoisons it. Manual
// poisoning is therefore off. All other checks, including leaks, are on.
//
//===----------------------------------------------------------------------===//

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char *__asan_default_options();

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
