//===- sharding_notation.h - Layouts in other notations ---------*- C++ -*-===//
//
// A layout names the mesh axes that split each dimension, and the axes over
// which the tensor is partial. These notations express most layouts:
//
//   PartitionSpec   P('dp', None, ('tp', 'cp'), unreduced={'ep'})
//   Shardy          #sdy.sharding<@mesh, [{"dp"}, {}, {"tp", "cp"}],
//                   unreduced={"ep"}>, in shardy.h
//   DTensor         (Shard(dim=0), Replicate(), Partial('sum')), per mesh axis
//   Mesh-TensorFlow batch:dp;hidden:tp, per named dimension
//
// Only DTensor can express a partial maximum, and Mesh-TensorFlow has no
// partial layouts. A writer returns "", with an error, if the notation cannot
// express the layout. On an error, a reader returns nothing. The message of the
// error starts with the column.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SHARDING_NOTATION_H
#define MTPLAN_TOOLS_EXCHANGE_SHARDING_NOTATION_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/layout.h"

namespace mtplan::tools {

using Errors = std::vector<std::string>;

std::string writePartitionSpec(const planner::Layout &layout,
                               const planner::Mesh &mesh, Errors &errors);
/// Missing entries at the end are None.
std::optional<planner::Layout> readPartitionSpec(const std::string &text,
                                                 std::size_t rank,
                                                 const planner::Mesh &mesh,
                                                 Errors &errors);

std::string writeDTensor(const planner::Layout &layout,
                         const planner::Mesh &mesh);
std::optional<planner::Layout> readDTensor(const std::string &text,
                                           std::size_t rank,
                                           const planner::Mesh &mesh,
                                           Errors &errors);

struct NamedDim {
  std::string name;
  std::int64_t size = 1;
};
std::string writeMeshTensorflow(const planner::Layout &layout,
                                const std::vector<NamedDim> &dims,
                                const planner::Mesh &mesh, Errors &errors);
/// Reads rules such as "batch:dp". An axis that splits two dimensions is an
/// error. An axis whose size does not divide its dimension is an error, too.
std::optional<planner::Layout>
readMeshTensorflow(const std::string &rules, const std::vector<NamedDim> &dims,
                   const planner::Mesh &mesh, Errors &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHARDING_NOTATION_H
