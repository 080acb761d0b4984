//===- replicas.h - Groups of replicas for experts and ZeRO -----*- C++ -*-===//
//
// Replicas form groups that share a set of experts (ep) and groups that share
// what ZeRO splits (zeroRanks). This file alone decides which numbers are
// compatible with the rest of a mesh; its messages name the nearest that are.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_REPLICAS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_REPLICAS_H

#include "planner/search/space/search_options.h"

namespace mtplan::planner {

/// Returns the experts of a layer, without those that every rank has; 1: none.
std::int64_t expertsOf(const ModelGraph &model);

/// Returns the expert ranks that `asked` allows `dp` replicas, ascending.
std::vector<int> expertRanks(const Choices<int> &asked, std::int64_t experts,
                             int dp);

/// Returns the numbers of replicas, out of dp, that may share what ZeRO splits
/// under the configuration's ep: those that fill a level of the network, and
/// all; or those that were asked for. Stage 0 splits nothing: 1.
std::vector<int> zeroRanksOf(const Parallelism &config, const Machine &machine,
                             const Choices<int> &asked);

/// Returns why none of the expert ranks asked for is possible, with the nearest
/// that are; empty if one is.
/// \param areReplicas  whether `devices` is dp; else dp is open and divides it
std::string againstExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas = true);

/// Returns why none of the ZeRO groups asked for is possible.
/// \param expertRanks  those that are left, not empty
std::string againstZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_REPLICAS_H
