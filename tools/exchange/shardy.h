//===- shardy.h - Layouts in Shardy's notation ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SHARDY_H
#define MTPLAN_TOOLS_EXCHANGE_SHARDY_H

#include <optional>
#include <string>
#include <vector>

#include "planner/graph/layout.h"
#include "tools/exchange/sharding_notation.h"

namespace mtplan::tools {

/// Writes `sdy.mesh @name = <["dp"=2, "tp"=4]>`.
std::string writeShardyMesh(const planner::Mesh &mesh, const std::string &name);

struct NamedMesh {
  std::string name;
  planner::Mesh mesh;
};
/// Reads a text in the form that writeShardyMesh() writes.
std::optional<NamedMesh> readShardyMesh(const std::string &text,
                                        Errors &errors);

/// Writes `#sdy.sharding<@name, [{"dp"}, {}]>`. Returns "", with an error, if
/// Shardy cannot express the layout.
std::string writeShardy(const planner::Layout &layout,
                        const planner::Mesh &mesh, const std::string &meshName,
                        Errors &errors);
/// Holds a Shardy attribute, including the properties that a Layout lacks.
struct ShardyLayout {
  planner::Layout layout;
  std::vector<bool> open;      ///< by dimension: propagation may add axes
  std::vector<int> priorities; ///< by dimension; 0 comes first
};
/// Reads a text in the form that writeShardy() writes. The text may also have
/// open dimensions, priorities and replicated axes.
std::optional<ShardyLayout> readShardy(const std::string &text,
                                       const NamedMesh &mesh, Errors &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHARDY_H
