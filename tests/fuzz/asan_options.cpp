//===- asan_options.cpp - How AddressSanitizer runs beside LLVM -----------===//
//
// What LLVM's allocators hand out in headers that we compile is poisoned first;
// the packaged library, built without a sanitizer, never lifts the poison. So
// poisoning by hand is off; all other checks, of leaks too, are on.
//
//===----------------------------------------------------------------------===//

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char *__asan_default_options();

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}
