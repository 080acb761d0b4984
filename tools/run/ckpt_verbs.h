//===- ckpt_verbs.h - `mtrun ckpt ...` --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CKPT_VERBS_H
#define MTPLAN_TOOLS_RUN_CKPT_VERBS_H

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace mtplan::tools {

struct CkptFlags {
  std::string from, to;
  std::string toFormat, type, like, family; ///< "": not given
  std::optional<std::int64_t> heads, shardBytes;
  bool tensors = false;
};

/// Holds the printed text. `yes` says whether the checkpoint is undamaged, the
/// two checkpoints are equal, or the conversion is done.
struct CkptAnswer {
  std::string text;
  bool yes = true;
};

CLI::App *describeCkpt(CLI::App &app, CkptFlags &flags);

/// \throws BadInput, or the errors of runtime/exchange
CkptAnswer runCkpt(const CLI::App &ckpt, CkptFlags flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CKPT_VERBS_H
