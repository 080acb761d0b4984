//===- thread_group.h - Collectives of thread ranks -------------*- C++ -*-===//
//
// Each place copies what it needs from the others' buffers. In a reduction each
// place reduces its share of all inputs into all outputs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H
#define MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/communicator/rendezvous.h"

namespace mtplan::runtime {

class ThreadGroup final : public Communicator {
public:
  ThreadGroup(std::shared_ptr<Rendezvous> rendezvous, int place);

  int size() const override { return rendezvous->size(); }
  int place() const override { return its; }

  void allReduce(const std::string &label, const void *in, void *out,
                 Pieces pieces, Reduction reduction) override;
  void reduce(const std::string &label, const void *in, void *out,
              Pieces pieces, Reduction reduction, int root) override;
  void allGather(const std::string &label, const void *in, void *out,
                 Pieces pieces) override;
  void reduceScatter(const std::string &label, const void *in, void *out,
                     Pieces pieces, Reduction reduction) override;
  void allToAll(const std::string &label, const void *in, void *out,
                Pieces pieces) override;
  void broadcast(const std::string &label, void *data, Pieces pieces,
                 int root) override;
  void barrier(const std::string &label);

private:
  class Session;

  std::shared_ptr<Rendezvous> rendezvous;
  int its;
  std::uint64_t calls = 0;
  bool broken = false;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_THREAD_GROUP_H
