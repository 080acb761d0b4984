//===- ckpt_text.h - What a checkpoint is, for people -----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CKPT_TEXT_H
#define MTPLAN_TOOLS_RUN_CKPT_TEXT_H

#include <cstdint>
#include <string>

#include "tools/run/ckpt_verbs.h"

namespace mtplan::tools {

/// \param tensors  whether to list them
std::string ckptInfo(const std::string &path, bool tensors);

/// Of a folder, all checkpoints in it. No if one is damaged: the text says all
/// that is.
CkptAnswer ckptVerify(const std::string &path);

/// "6 MiB"
std::string sizeText(std::int64_t bytes);

/// No if they differ.
CkptAnswer ckptDiff(const std::string &first, const std::string &second);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CKPT_TEXT_H
