//===- llmc_file.h - The model file of llm.c --------------------*- C++ -*-===//
//
//   i32[256]   20240326, version (3: float, 5: bf16), positions, vocabulary,
//              layers, heads, channels, padded vocabulary, then zeros
//   tensors    one after another, sorted by kind and then by layer; weights
//              are [out, in]; the token table is padded with rows of zeros
//
// karpathy/llm.c defines the format in train_gpt2.py (write_model) and
// train_gpt2.cu.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_LLMC_FILE_H
#define MTPLAN_RUNTIME_EXCHANGE_LLMC_FILE_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/files.h"
#include "runtime/data/token_file.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// The file pads its vocabulary to a multiple of this number.
inline constexpr std::int64_t kLlmcRows = 128;

struct LlmcHeader {
  ElementType type = ElementType::f32; ///< f32 or bf16
  std::int64_t positions = 0, vocabulary = 0, layers = 0, heads = 0,
               channels = 0, paddedVocabulary = 0;

  bool operator==(const LlmcHeader &) const = default;
};

struct LlmcTensor {
  std::string name;                ///< as in llmcRules(): "qkvw.3"
  std::vector<std::int64_t> shape; ///< without padding
  std::int64_t offset = 0;         ///< bytes from the start of the file
  std::int64_t room = 0;           ///< bytes, with padding
};

/// \throws DataError for an invalid field or file size
LlmcHeader readLlmcHeader(const MappedFile &file);
std::array<std::int32_t, kLlmcHeaderBytes / 4>
llmcHeaderWords(const LlmcHeader &header);

/// Returns the tensors in the file's order.
std::vector<LlmcTensor> llmcTensors(const LlmcHeader &header);
std::int64_t llmcBytes(const LlmcHeader &header);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_LLMC_FILE_H
