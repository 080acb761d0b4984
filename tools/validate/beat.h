//===- beat.h - Our plans against published configurations ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_BEAT_H
#define MTPLAN_TOOLS_VALIDATE_BEAT_H

#include "tools/validate/row_price.h"

namespace mtplan::tools {

/// One model on one cluster with one batch, as published and as planned.
struct Beaten {
  std::string name;
  std::vector<std::string> ids; ///< of the rows that did this
  std::string fastest;          ///< of them, by our prices
  double published = 0.0;       ///< what that one takes, by our prices
  bool publishedFits = false;
  bool found = false;
  std::string how;      ///< the plan of the open space
  double planned = 0.0; ///< what it takes
  bool optimal = false;
  bool isBeaten() const { return found && planned <= published * (1 + 1e-9); }
};

/// Searches the open space for every model, cluster, batch and software of
/// `rows`. What does not fit by our estimate counts among the published too.
std::vector<Beaten> beat(const std::vector<RunRow> &rows);

std::string beatText(const std::vector<Beaten> &all);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_BEAT_H
