//===- beat.h - Our plans against published configurations ------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_BEAT_H
#define MTPLAN_TOOLS_VALIDATE_BEAT_H

#include <functional>

#include "tools/validate/row_price.h"

namespace mtplan::tools {

/// A published configuration by our prices.
struct PublishedPrice {
  std::string id;
  double seconds = 0.0;
  planner::Bytes memory, limit; ///< of the fullest rank
};

/// One model on one cluster with one batch, as published and as planned.
struct Beaten {
  std::string name;
  std::size_t runs = 0;
  /// The fastest of those that fit by our estimate, and of those that do not:
  /// these are no plans that we could choose.
  std::optional<PublishedPrice> fitting, tooLarge;
  bool found = false;
  std::string how;      ///< the plan of the open space
  double planned = 0.0; ///< what it takes, in seconds
  bool optimal = false;
  double searchSeconds = 0.0; ///< wall time

  enum class Verdict {
    beaten,       ///< it fits, and is at least as fast as all published
    beatsFitting, ///< it fits, and is at least as fast as all that fit
    slower,       ///< than one that fits
    nothingFits   ///< no plan found; whether one was published, `fitting` says
  };
  Verdict verdict() const;
};

/// Which of the groups to plan: those with an index of part - 1 modulo parts.
struct BeatPart {
  std::size_t part = 1, parts = 1;
};

/// Searches the open space for every model, cluster, batch and software of
/// `rows`, in the order of their first row.
/// \param done  told of each when it is planned: its index and how many there
///              are, of all parts
std::vector<Beaten>
beat(const std::vector<RunRow> &rows, BeatPart part,
     const std::function<void(const Beaten &, std::size_t, std::size_t)> &done);

/// One line for a screen, without its end.
std::string beatLine(const Beaten &one);
/// What they add up to, a line each.
std::string beatTotals(const std::vector<Beaten> &all);

/// A page of Markdown with every group.
/// \param csv  name of the file beside it
std::string beatMarkdown(const std::vector<Beaten> &all,
                         const std::string &csv);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_BEAT_H
