//===- mpi_program.cpp - One rank of a run under mpirun -------------------===//
//
// mpi_test.cpp starts "communicator_mpi_program SCENARIO" on three ranks. Each
// rank prints its process id and the lines of the scenario.
//
//===----------------------------------------------------------------------===//

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "runtime/communicator/launch.h"
#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {
namespace {

/// Prints a line by a single write, because ranks share their output.
void say(const std::string &line) {
  const std::string text = line + '\n';
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0)
    std::abort();
}

void sum(Communicator &group, const std::string &label, std::int64_t inner) {
  std::vector<float> data(inner, 1.0F);
  group.allReduce(label, data.data(), data.data(), {ElementType::f32, 1, inner},
                  Reduction::sum);
  if (data != std::vector<float>(inner, static_cast<float>(group.size())))
    throw std::runtime_error("wrong sum: " + label);
}

/// Returns a scenario in which all ranks reduce twice. Rank 1 calls `at1`
/// between the two reductions.
std::function<void(World &)> losing(const std::function<void()> &at1,
                                    std::int64_t inner = 10) {
  return [at1, inner](World &world) {
    const auto group = world.group("tp", {0, 1, 2});
    sum(*group, "first", inner);
    if (world.rank() == 1)
      at1();
    sum(*group, "h.3.mlp.fc2", inner);
  };
}

void sleepLong() { std::this_thread::sleep_for(std::chrono::minutes(10)); }

const std::map<std::string, std::function<void(World &)>> kScenarios = {
    // Two threads of each rank use one group each, in no fixed order.
    {"threads",
     [](World &world) {
       const auto one = world.group("one", {0, 1, 2});
       const auto two = world.group("two", {2, 1, 0});
       const auto use = [](Communicator &group) {
         for (int i = 0; i < 300; ++i)
           sum(group, "s", i % 2 == 0 ? 7 : 2000);
       };
       std::thread other([&] { use(*two); });
       use(*one);
       other.join();
     }},
    {"cases",
     [](World &world) {
       say("digest " + std::to_string(world.rank()) + ' ' +
           std::to_string(runScenario(world)));
     }},
    {"killed", losing([] { raise(SIGKILL); })},
    {"stopped", losing([] { raise(SIGSTOP); })},
    {"stopped-large", losing([] { raise(SIGSTOP); }, 3000000)},
    {"busy", losing(sleepLong)},
    {"exits", losing([] { std::_Exit(0); })},
    {"throws", losing([] { throw std::out_of_range("no such token"); })},
    {"label",
     [](World &world) {
       const auto group = world.group("tp", {0, 1, 2});
       sum(*group, world.rank() == 1 ? "b" : "a", 3);
     }},
    {"size",
     [](World &world) {
       const auto group = world.group("tp", {0, 1, 2});
       sum(*group, "s", world.rank() == 1 ? 100000 : 99999);
     }},
    {"kind",
     [](World &world) {
       const auto group = world.group("tp", {0, 1, 2});
       std::vector<float> in(5), all(15);
       if (world.rank() == 2)
         group->allGather("s", in.data(), all.data(), {ElementType::f32, 1, 5});
       else
         sum(*group, "s", 5);
     }},
    {"groups",
     [](World &world) {
       const auto one = world.group(world.rank() == 2 ? "dp" : "tp", {0, 1, 2});
       sum(*one, "s", 5);
     }},
    {"transfer",
     [](World &world) {
       std::vector<char> data(5000);
       if (world.rank() == 0)
         world.send("h.1", data.data(), 5000, 1, 3);
       if (world.rank() == 1)
         world.receive("h.1", data.data(), 4000, 0, 3);
       world.barrier("after");
     }},
    // Rank 0 waits for rank 1. Later rank 1 waits for rank 2, which is stopped.
    {"chain",
     [](World &world) {
       int value = 0;
       if (world.rank() == 0)
         world.receive("h", &value, sizeof(value), 1, 5);
       if (world.rank() == 2)
         raise(SIGSTOP);
       std::this_thread::sleep_for(std::chrono::milliseconds(500));
       sum(*world.group("tp", {1, 2}), "late", 1);
     }},
    {"circle",
     [](World &world) {
       int value = 0;
       if (world.rank() < 2)
         world.receive("r" + std::to_string(world.rank()), &value,
                       sizeof(value), 1 - world.rank(), 0);
     }},
    {"ended",
     [](World &world) {
       if (world.rank() != 1)
         sum(*world.group("tp", {0, 1, 2}), "s", 3);
     }},
    {"stray",
     [](World &world) {
       const int value = 1;
       if (world.rank() == 0)
         world.send("lost", &value, sizeof(value), 1, 9);
     }},
    {"fails",
     [](World &world) {
       if (world.rank() == 1)
         world.fail("the disk is full");
       else
         world.barrier("step");
     }},
    // A rank that is done waits for the last rank, even beyond the timeout.
    {"late",
     [](World &world) {
       if (world.rank() == 1)
         std::this_thread::sleep_for(std::chrono::seconds(5));
       say("done " + std::to_string(world.rank()));
     }},
};

const std::set<std::string> kImpatient = {
    "stopped", "stopped-large", "busy", "chain", "circle", "ended", "late"};

} // namespace
} // namespace mtplan::runtime

int main(int argc, char **argv) {
  using namespace mtplan::runtime;
  const auto scenario = kScenarios.find(argc == 2 ? argv[1] : "");
  const Launch launch = readLaunch(ownEnvironment(), builtMpi());
  if (scenario == kScenarios.end() || launch.transport == Transport::threads)
    return 2;
  say("process " + std::to_string(getpid()));
  WorldOptions options;
  // Patience is short only in scenarios that test it, so that no other scenario
  // times out on a loaded machine.
  options.patience = kImpatient.contains(scenario->first)
                         ? std::chrono::seconds(3)
                         : std::chrono::seconds(600);
  runAsRank(launch, options, scenario->second);
  return 0;
}
