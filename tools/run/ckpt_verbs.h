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

/// What a verb prints, and whether its answer is yes: whole, equal, done.
struct CkptAnswer {
  std::string text;
  bool yes = true;
};

/// Adds `ckpt` with its verbs to `app`; the subcommand.
CLI::App *describeCkpt(CLI::App &app, CkptFlags &flags);

/// Does what was typed.
/// \throws BadInput, or what runtime/exchange throws
CkptAnswer runCkpt(const CLI::App &ckpt, CkptFlags flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CKPT_VERBS_H
