//===- beat.h - Plans against published configurations ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_VALIDATE_BEAT_H
#define MTPLAN_TOOLS_VALIDATE_BEAT_H

#include <functional>

#include "tools/runs/row_price.h"

namespace mtplan::tools {

struct PublishedPrice {
  std::string id;
  double seconds = 0.0;
  planner::Bytes memory, limit; ///< memory of the rank that needs the most
};

/// Compares a plan with the published configurations for the same model,
/// cluster and batch.
struct PlanComparison {
  std::string name;
  std::size_t runs = 0;
  /// `fitting` is the fastest published configuration that fits by our
  /// estimate. `tooLarge` is the fastest published configuration that does not
  /// fit. A plan cannot choose that configuration.
  std::optional<PublishedPrice> fitting, tooLarge;
  bool found = false;
  std::string configuration;
  double planned = 0.0; ///< seconds
  /// The plan is slower than the optimum by at most this share of the optimum;
  /// 0: the plan is proved optimal.
  double gap = 0.0;
  double searchSeconds = 0.0;

  enum class Verdict {
    beaten,       ///< the plan is no slower than any published run
    beatsFitting, ///< only `tooLarge` is faster than the plan
    slower,       ///< the plan is slower than `fitting`
    nothingFits   ///< no plan fits; a published run may fit (`fitting`)
  };
  Verdict verdict() const;
};

/// Selects the groups whose index is part - 1 modulo parts.
struct BeatPart {
  std::size_t part = 1, parts = 1;
};

/// Searches for a plan for each group in `part`, in order of first appearance.
/// The rows of a group share model, precision, cluster, batch and software.
/// \param done  called after each group, with its index and the number of
///   groups in all parts
std::vector<PlanComparison>
beat(const std::vector<RunRow> &rows, BeatPart part,
     const std::function<void(const PlanComparison &, std::size_t, std::size_t)>
         &done);

std::string beatLine(const PlanComparison &one);
std::string beatTotals(const std::vector<PlanComparison> &all);

/// Returns a page of Markdown with every group.
/// \param csv  name of a file in the page's folder
std::string beatMarkdown(const std::vector<PlanComparison> &all,
                         const std::string &csv);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_BEAT_H
