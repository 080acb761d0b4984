//===- llmc_header.h - How files of llm.c begin -----------------*- C++ -*-===//
//
// All of them: tokens, models, states. 256 int32, of which the first says what
// the file is and the second its version.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_LLMC_HEADER_H
#define MTPLAN_RUNTIME_DATA_LLMC_HEADER_H

#include <cstdint>

namespace mtplan::runtime {

inline constexpr std::int64_t kLlmcHeaderBytes = 1024;
inline constexpr std::int32_t kLlmcGpt2Magic = 20240520;   ///< version 1
inline constexpr std::int32_t kLlmcLlama3Magic = 20240801; ///< version 7
inline constexpr std::int32_t kLlmcModelMagic = 20240326;  ///< version 3 or 5
inline constexpr std::int32_t kLlmcStateMagic = 20240527;  ///< version 1

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_LLMC_HEADER_H
