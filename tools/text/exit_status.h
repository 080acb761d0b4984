//===- exit_status.h - Exit statuses of `mtplan` ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_EXIT_STATUS_H
#define MTPLAN_TOOLS_TEXT_EXIT_STATUS_H

namespace mtplan::tools {

inline constexpr int kDone = 0;
inline constexpr int kNothingFits = 1; ///< no plan fits, or a proof failed
inline constexpr int kBadInput = 2;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_EXIT_STATUS_H
