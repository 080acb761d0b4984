//===- sharding_notation.h - Layouts in other people's words ----*- C++ -*-===//
//
// A layout says per dimension which axes split it, and what it is partial over.
// So do these notations, each with something left out:
//
//   PartitionSpec   P('dp', None, ('tp', 'cp'), unreduced={'ep'})
//   Shardy          #sdy.sharding<@mesh, [{"dp"}, {}, {"tp", "cp"}],
//                   unreduced={"ep"}>
//   DTensor         (Shard(dim=0), Replicate(), Partial('sum')), per mesh axis
//   Mesh-TensorFlow batch:dp;hidden:tp, per named dimension
//
// Only DTensor has a word for a partial maximum; only DTensor's and ours have
// an axis order that is not the order of writing. Writers answer with "" and an
// error where the notation has no word; readers with nothing and an error that
// starts with the column.
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
/// A spec for a tensor of `rank` dimensions; missing trailing entries are None.
std::optional<planner::Layout> readPartitionSpec(const std::string &text,
                                                 std::size_t rank,
                                                 const planner::Mesh &mesh,
                                                 Errors &errors);

/// `sdy.mesh @name = <["dp"=2, "tp"=4]>`
std::string writeShardyMesh(const planner::Mesh &mesh, const std::string &name);
struct NamedMesh {
  std::string name;
  planner::Mesh mesh;
};
std::optional<NamedMesh> readShardyMesh(const std::string &text,
                                        Errors &errors);

std::string writeShardy(const planner::Layout &layout,
                        const planner::Mesh &mesh, const std::string &meshName,
                        Errors &errors);
/// What a Shardy attribute says beyond a layout.
struct ShardyLayout {
  planner::Layout layout;
  std::vector<bool> open; ///< per dimension: propagation may split it further
  std::vector<int> priorities; ///< per dimension, 0 first
};
std::optional<ShardyLayout> readShardy(const std::string &text,
                                       const NamedMesh &mesh, Errors &errors);

std::string writeDTensor(const planner::Layout &layout,
                         const planner::Mesh &mesh);
std::optional<planner::Layout> readDTensor(const std::string &text,
                                           std::size_t rank,
                                           const planner::Mesh &mesh,
                                           Errors &errors);

/// A dimension as Mesh-TensorFlow knows it.
struct NamedDim {
  std::string name;
  std::int64_t size = 1;
};
std::string writeMeshTensorflow(const planner::Layout &layout,
                                const std::vector<NamedDim> &dims,
                                const planner::Mesh &mesh, Errors &errors);
/// The layout that the rules give a tensor with these dimensions. Refused: an
/// axis on two of its dimensions, and a size that does not divide.
std::optional<planner::Layout>
readMeshTensorflow(const std::string &rules, const std::vector<NamedDim> &dims,
                   const planner::Mesh &mesh, Errors &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SHARDING_NOTATION_H
