//===- replicas.h - What replicas may share among them ----------*- C++ -*-===//
//
// Replicas share experts (ep of them a set) and what ZeRO splits (zeroRanks of
// them a copy). Which numbers go together with the others of a mesh is said
// here alone; words against those that were asked for name the nearest that do.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_REPLICAS_H
#define MTPLAN_PLANNER_SEARCH_REPLICAS_H

#include "planner/search/search.h"

namespace mtplan::planner {

/// Experts of a layer, those aside that every rank has alike; 1: none.
std::int64_t expertsOf(const ModelGraph &model);

/// Expert ranks that `asked` leaves to `dp` replicas, ascending.
std::vector<int> expertRanks(const Choices<int> &asked, std::int64_t experts,
                             int dp);

/// Numbers of replicas, of `how`'s dp, that may share what ZeRO splits under
/// its ep: of all of them those that fill a level of the network, and all; or
/// those that were asked for. Nothing is split in stage 0: 1.
std::vector<int> zeroRanksOf(const Parallelism &how, const Machine &machine,
                             const Choices<int> &asked);

/// What stands against all expert ranks that were asked for, with the nearest
/// that do; empty if nothing does.
/// \param areReplicas  `devices` is dp; else dp is open and divides it
std::string againstExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas = true);

/// The same of the replicas, of `dp`, that share what ZeRO splits.
/// \param expertRanks  that are left, not empty
std::string againstZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_REPLICAS_H
