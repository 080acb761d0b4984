//===- tp_names.h - What Hugging Face calls our operators -------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H
#define MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::tools {

enum class ModuleKind : std::uint8_t { linear, embedding, head, norm };

/// One module of a family and the operators it stands for: several where
/// Hugging Face fuses what mtplan keeps apart.
struct TpModule {
  std::string_view module;              ///< "layers.*.self_attn.q_proj"
  std::vector<std::string_view> labels; ///< "h.*.attn.q"
  ModuleKind kind = ModuleKind::linear;
};

/// The modules of a `model_type`; null if there is no such family.
const std::vector<TpModule> *tpModules(std::string_view family);

/// "gpt2, gptj, ..."
std::string tpFamilies();

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TP_NAMES_H
