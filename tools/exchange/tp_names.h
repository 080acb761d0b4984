//===- tp_names.h - Hugging Face's names of operators -----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H
#define MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::tools {

enum class ModuleKind : std::uint8_t { linear, embedding, head, norm };

/// A module of a family, and its operators. A module has several where Hugging
/// Face fuses operators that mtplan keeps apart.
struct TpModule {
  std::string_view module;              ///< "layers.*.self_attn.q_proj"
  std::vector<std::string_view> labels; ///< "h.*.attn.q"
  ModuleKind kind = ModuleKind::linear;
};

/// Returns the modules of a `model_type`; null if the family is unknown.
const std::vector<TpModule> *tpModules(std::string_view family);

/// Returns "gpt2, gptj, ...".
std::string tpFamilies();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H
