//===- ckpt_convert.h - `mtrun ckpt convert` --------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_CKPT_CONVERT_H
#define MTPLAN_TOOLS_RUN_CKPT_CONVERT_H

#include <string>

#include "tools/run/ckpt_verbs.h"

namespace mtplan::tools {

/// Converts weights, and returns a description of what was written.
/// \throws BadInput, or the errors of runtime/exchange
std::string ckptConvert(const CkptFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_CKPT_CONVERT_H
