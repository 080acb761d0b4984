//===- safetensors_files.h - Small safetensors files for tests --*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_SAFETENSORS_SAFETENSORS_FILES_H
#define MTPLAN_TESTS_RUNTIME_SAFETENSORS_SAFETENSORS_FILES_H

#include <cstdint>
#include <span>
#include <string>

#include "runtime/safetensors/header.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {

/// Returns a file: the length of `json`, then `json`, then `dataBytes` bytes.
inline std::string safetensorsFile(const std::string &json,
                                   std::size_t dataBytes = 0) {
  return bytesOfNumbers<std::uint64_t>({json.size()}) + json +
         std::string(dataBytes, 'x');
}

/// Returns the JSON of a header that has one tensor, "a".
inline std::string oneTensor(const std::string &type, const std::string &shape,
                             const std::string &offsets) {
  return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape +
         R"(,"data_offsets":)" + offsets + "}}";
}

inline SafetensorsHeader headerOf(const std::string &bytes) {
  return parseHeader("x.safetensors", std::as_bytes(std::span(bytes)),
                     static_cast<std::int64_t>(bytes.size()));
}

/// Returns the error of reading a header; "" if there is none.
inline std::string errorOfHeader(const std::string &bytes) {
  return messageOf<DataError>([&] { headerOf(bytes); });
}

/// Holds a file that the reference implementation of safetensors wrote. It has
/// the tensors a, F32 [[1, 2], [3, 4]], and b, BF16 [1, 2, 3].
inline const std::string kGoldenSafetensors = bytesOfHex(
    "90000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a2270"
    "74227d2c2261223a7b226474797065223a22463332222c227368617065223a5b322c325d"
    "2c22646174615f6f666673657473223a5b302c31365d7d2c2262223a7b22647479706522"
    "3a2242463136222c227368617065223a5b335d2c22646174615f6f666673657473223a5b"
    "31362c32325d7d7d0000803f000000400000404000008040803f00404040");

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_SAFETENSORS_SAFETENSORS_FILES_H
