//===- slurm_lists.h - How Slurm writes lists -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H
#define MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H

#include <optional>
#include <string>

namespace mtplan::runtime {

/// Tasks on the node with that number, from 0, of a list as "2(x3),1": three
/// nodes with two each, then one with one. None if it has no such node.
std::optional<int> tasksOfNode(const std::string &list, int node);

/// The first of a list as "node[07-12,15],login": "node07". Empty if the list
/// is none.
std::string firstNode(const std::string &list);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H
