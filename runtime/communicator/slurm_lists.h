//===- slurm_lists.h - Parses Slurm's lists of hosts and tasks --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H
#define MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H

#include <optional>
#include <string>

namespace mtplan::runtime {

/// Returns the tasks on node number `node`, counted from 0, of a list such as
/// "2(x3),1": three nodes with two tasks each, then one with one. None if the
/// list has no such node.
std::optional<int> tasksOfNode(const std::string &list, int node);

/// Returns the first host of a list such as "node[07-12,15],login": "node07".
/// Empty if the list is malformed.
std::string firstNode(const std::string &list);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_SLURM_LISTS_H
