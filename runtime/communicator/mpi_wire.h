//===- mpi_wire.h - A wire over MPI -----------------------------*- C++ -*-===//
//
// Uses only point-to-point messages and polls them. MPI's own collectives and
// waits hang when a rank is missing, and do not report calls that differ.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_WIRE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_WIRE_H

#include <list>
#include <optional>
#include <string>
#include <utility>

#include <mpi.h>

#include "runtime/communicator/neighbours.h"
#include "runtime/communicator/wire.h"

namespace mtplan::runtime {

class MpiWire final : public Wire {
public:
  /// Requires that MPI is initialised.
  MpiWire();

  int rank() const override { return its; }
  int size() const override { return ranks; }
  int tags() const override { return highestTag; }
  bool servesThreads() const override;

  Ticket send(const Rows &from, int to, int tag) override;
  Ticket receive(const Rows &to, int from, int tag) override;
  void progress() override {}
  bool isThrough(Ticket &ticket) override;

  void tell(int to, int topic, const std::string &text) override;
  bool isAllTold() override;
  std::optional<Told> hear() override;
  std::optional<Stray> stray() override;

  std::string whyLost(int /*rank*/) const override { return {}; }
  bool hasDied(int rank) const override { return neighbours->hasDied(rank); }
  bool rest(int idle) const override;

private:
  MPI_Comm data = MPI_COMM_NULL, control = MPI_COMM_NULL;
  int its = 0, ranks = 1, highestTag = 32767;
  std::optional<Neighbours> neighbours;
  /// Their addresses stay valid.
  std::list<std::pair<MPI_Request, std::string>> told;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_WIRE_H
