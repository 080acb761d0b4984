//===- ckpt_text.h - Descriptions of checkpoints ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CKPT_TEXT_H
#define MTPLAN_TOOLS_RUN_CKPT_TEXT_H

#include <cstdint>
#include <string>

#include "tools/run/ckpt_verbs.h"

namespace mtplan::tools {

/// Describes a checkpoint.
/// \param tensors  whether to list them
std::string ckptInfo(const std::string &path, bool tensors);

/// Checks a checkpoint, or all in a folder. The answer is no if one is damaged;
/// the text then lists all damage.
CkptAnswer ckptVerify(const std::string &path);

/// Returns "6 MiB".
std::string sizeText(std::int64_t bytes);

/// Compares two checkpoints. The answer is no if they differ.
CkptAnswer ckptDiff(const std::string &first, const std::string &second);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CKPT_TEXT_H
