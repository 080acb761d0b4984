//===- collective_cost_test.cpp - Collectives by hand and as measured -----===//

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "planner/cost/collective_cost.h"
#include "tools/validate/collective_rows.h"

using namespace mtplan::planner;

namespace {

// Returns a machine with 100 GB/s within 8 devices, 10 GB/s beyond and no
// delays, so that expectations are worked by hand.
Machine roundMachine() {
  Machine machine;
  machine.devicesPerNode = 8;
  machine.levels.resize(2);
  machine.levels[0].ranks = 8;
  machine.levels[0].bandwidth = BytesPerSec{100e9};
  machine.levels[1].bandwidth = BytesPerSec{10e9};
  return machine;
}

// Returns the same machine with delays. On the inner and the outer level, a
// step of a ring takes 1 us and 4 us, and each collective another 3 us and 5
// us.
Machine slowMachine() {
  Machine machine = roundMachine();
  machine.levels[0].latency = Seconds{1e-6};
  machine.levels[1].latency = Seconds{4e-6};
  machine.levels[0].base = Seconds{3e-6};
  machine.levels[1].base = Seconds{5e-6};
  return machine;
}

constexpr StepKind kAll[] = {StepKind::allReduce, StepKind::reduceScatter,
                             StepKind::allGather, StepKind::allToAll};

double time(StepKind kind, double bytes, Group group, const Machine &machine) {
  return collectiveTime(kind, Bytes{bytes}, group, machine).value;
}

TEST(CollectiveTime, OneRankIsFree) {
  for (StepKind kind : kAll)
    EXPECT_EQ(collectiveTime(kind, Bytes{1e9}, {1, 1}, slowMachine()),
              Seconds{0.0});
}

TEST(CollectiveTime, TwoRanksOfANode) {
  Machine machine = roundMachine();
  // Each rank sends half of 1 GB twice, which is 1 GB at 100 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 1e9, {2, 1}, machine), 10e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::reduceScatter, 1e9, {2, 1}, machine), 5e-3);
  // A shard of 1 GB goes to the one neighbour.
  EXPECT_DOUBLE_EQ(time(StepKind::allGather, 1e9, {2, 1}, machine), 10e-3);
  // Half of the payload goes to the one neighbour.
  EXPECT_DOUBLE_EQ(time(StepKind::allToAll, 1e9, {2, 1}, machine), 5e-3);
}

TEST(CollectiveTime, AGroupWithOneRankPerNodeUsesTheOuterLevelAlone) {
  // Ranks 0 and 8 send the same bytes at 10 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 1e9, {2, 8}, roundMachine()),
                   100e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::allToAll, 1e9, {2, 16}, roundMachine()),
                   50e-3);
}

TEST(CollectiveTime, ACrossingGroupSendsOnlyItsShareAcross) {
  // 16 ranks on 2 nodes reduce 1.6 GB. Inside a node, 2 * 7/8 of 1.6 GB at 100
  // GB/s take 28 ms; between nodes, 2 * 1/2 of each rank's 0.2 GB at 10 GB/s
  // take 20 ms. The slower level determines the time.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 1.6e9, {16, 1}, roundMachine()),
                   28e-3);
  // 64 ranks on 8 nodes send 2 * 7/8 of 0.2 GB between nodes at 10 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 1.6e9, {64, 1}, roundMachine()),
                   35e-3);
  // Every fourth rank, 2 per node on 4 nodes, sends 2 * 3/4 of 0.8 GB across.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 1.6e9, {8, 4}, roundMachine()),
                   120e-3);
}

// On nodes of 8, one group of three has ranks 6, 7 and 8: two of its three
// links leave the node. Each rank sends 2/3 of 0.9 GB twice over its link at 10
// GB/s.
TEST(CollectiveTime, GroupsAcrossNodesPayForTheOuterLevel) {
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.9e9, {3, 1, 12}, roundMachine()),
                   120e-3);
  // One or two groups fit in a node.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.9e9, {3, 1, 3}, roundMachine()),
                   12e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.9e9, {3, 1, 6}, roundMachine()),
                   12e-3);
  // Eight ranks are on one node and four on another: three units of four. Each
  // rank of a unit sends 2/3 of its quarter, 0.3 GB, between nodes.
  EXPECT_DOUBLE_EQ(
      time(StepKind::reduceScatter, 1.2e9, {12, 1, 24}, roundMachine()),
      2.0 / 3 * 0.3e9 / 10e9);
}

TEST(CollectiveTime, AllToAllAcrossNodesIsBoundByTrafficOutOfTheNode) {
  // 8 of 16 ranks are on the other node, so half of 1.6 GB crosses at 10 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allToAll, 1.6e9, {16, 1}, roundMachine()),
                   80e-3);
}

TEST(CollectiveTime, EmptyPayloadCostsOnlyStepsAndPasses) {
  // An all-gather over 8 ranks of a node takes 7 steps of 1 us, and 3 us more.
  // An all-reduce takes twice as long.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0, {8, 1}, slowMachine()), 20e-6);
  EXPECT_DOUBLE_EQ(time(StepKind::allGather, 0, {8, 1}, slowMachine()), 10e-6);
  // Over 4 nodes of 8 ranks, it takes 7 steps of 1 us and 3 steps of 4 us, and
  // 3 us and 5 us more.
  EXPECT_DOUBLE_EQ(time(StepKind::allGather, 0, {32, 1}, slowMachine()), 27e-6);
}

TEST(CollectiveTime, ChunksArePipelined) {
  // Two ranks need one step of 1 us, and 9 us for 0.9 MB at 100 GB/s. In chunks
  // of the best size, this takes (sqrt(1) + sqrt(9))^2 = 16 us. The collective
  // takes 3 us more.
  EXPECT_NEAR(time(StepKind::allGather, 0.9e6, {2, 1}, slowMachine()), 19e-6,
              1e-15);
}

TEST(CollectiveTime, ASwitchThatSumsHalvesTheTraffic) {
  Machine machine = roundMachine();
  machine.levels[0].inSwitchReduction = true;
  machine.levels[0].reductionBandwidth = BytesPerSec{100e9};
  machine.levels[0].reductionLatency = Seconds{0.0};
  // 8 ranks send 9/8 of 0.8 GB instead of 14/8, at 100 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {8, 1}, machine), 9e-3);
  // Two ranks are faster without the switch: they send 1 instead of 3/2 of 0.8
  // GB.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {2, 1}, machine), 8e-3);
  // A reduce-scatter sums nothing in the switch and sends 7/8 of 0.8 GB.
  EXPECT_DOUBLE_EQ(time(StepKind::reduceScatter, 0.8e9, {8, 1}, machine), 7e-3);
}

TEST(CollectiveTime, AMeshOfLinksIsAsFastAsItsRings) {
  Machine machine = roundMachine();
  machine.levels[0].rings = {1, 2, 4};
  // A rank sends 2 * 1/2 of 0.6 GB on one ring, 2 * 2/3 on two, 2 * 3/4 on
  // four.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.6e9, {2, 1}, machine), 6e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.6e9, {3, 1}, machine), 4e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.6e9, {4, 1}, machine), 2.25e-3);
}

// Returns a machine with 200 GB/s in a pair of devices, 20 GB/s between two
// pairs of a socket, 10 GB/s between two sockets of a node, and 2 GB/s between
// nodes.
Machine pairedMachine() {
  Machine machine;
  machine.devicesPerNode = 8;
  machine.levels.resize(4);
  const int kRanks[] = {2, 4, 8, 0};
  const double kRates[] = {200e9, 20e9, 10e9, 2e9};
  for (std::size_t i = 0; i < 4; ++i) {
    machine.levels[i].ranks = kRanks[i];
    machine.levels[i].bandwidth = BytesPerSec{kRates[i]};
  }
  return machine;
}

TEST(CollectiveTime, EveryLevelCarriesTheRemainder) {
  Machine machine = pairedMachine();
  // A pair sends 2 * 1/2 of 0.8 GB at 200 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {2, 1}, machine), 4e-3);
  // In a socket, a rank sends 2 * 1/2 of its pair's share, 0.4 GB, at 20 GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {4, 1}, machine), 20e-3);
  // In a node, 0.2 GB remain at 10 GB/s, so the socket stays the slowest.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {8, 1}, machine), 20e-3);
  // Two nodes send 0.1 GB at 2 GB/s, and four nodes 2 * 3/4 of 0.1 GB.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {16, 1}, machine), 50e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {32, 1}, machine), 75e-3);
  // A group with one rank of each pair sends all 0.8 GB between the pairs of a
  // socket.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {2, 2}, machine), 40e-3);
  // Two of four ranks share a socket: 0.4 GB between sockets take as long.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {4, 2}, machine), 40e-3);
  // Ranks 0 and 4 send all 0.8 GB between sockets.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {2, 4}, machine), 80e-3);
  // Ranks 0 and 8 send all 0.8 GB between nodes.
  EXPECT_DOUBLE_EQ(time(StepKind::allReduce, 0.8e9, {2, 8}, machine), 400e-3);
}

TEST(CollectiveTime, ScatterAndGatherAreHalvesOfAnAllReduce) {
  Machine machine = pairedMachine();
  // An all-gather of eight shards of 0.1 GB, or a reduce-scatter of 0.8 GB,
  // takes half as long as an all-reduce of 0.8 GB.
  EXPECT_DOUBLE_EQ(time(StepKind::allGather, 0.1e9, {8, 1}, machine), 10e-3);
  EXPECT_DOUBLE_EQ(time(StepKind::reduceScatter, 0.8e9, {8, 1}, machine),
                   10e-3);
  // Each rank gets one eighth of 0.8 GB from each peer: 4 peers are in the
  // other socket, behind a link of 10 GB/s, and 2 in the other pair, behind 20
  // GB/s.
  EXPECT_DOUBLE_EQ(time(StepKind::allToAll, 0.8e9, {8, 1}, machine), 40e-3);
}

TEST(PointToPointTime, UsesTheLinkBetweenTheRanks) {
  Machine machine = pairedMachine();
  auto seconds = [&](int stride) {
    return pointToPointTime(Bytes{0.8e9}, stride, machine).value;
  };
  EXPECT_DOUBLE_EQ(seconds(2), 40e-3);
  EXPECT_DOUBLE_EQ(seconds(4), 80e-3);
  EXPECT_DOUBLE_EQ(seconds(8), 400e-3);
  EXPECT_DOUBLE_EQ(seconds(16), 400e-3);
  // A message between sockets takes 10 us more: a base of 3 us and a latency of
  // 7 us.
  machine.levels[2].base = Seconds{3e-6};
  machine.levels[2].latency = Seconds{7e-6};
  EXPECT_DOUBLE_EQ(seconds(4), 80e-3 + 10e-6);
}

TEST(CollectiveTime, AllReduceIsReduceScatterPlusAllGather) {
  for (int size : {2, 3, 8, 16, 64})
    for (int stride : {1, 2, 8})
      for (double payload : {0.0, 1e3, 6e6, 6e9}) {
        SCOPED_TRACE(testing::Message()
                     << size << " ranks, stride " << stride << ", " << payload);
        Group group{size, stride};
        double halves =
            time(StepKind::reduceScatter, payload, group, slowMachine()) +
            time(StepKind::allGather, payload / size, group, slowMachine());
        EXPECT_NEAR(time(StepKind::allReduce, payload, group, slowMachine()),
                    halves, 1e-12 * (1 + halves));
      }
}

TEST(CollectiveTime, MoreBytesTakeLonger) {
  for (StepKind kind : kAll)
    for (Group group : {Group{2, 1}, Group{8, 1}, Group{16, 1}, Group{4, 8}}) {
      double before = -1;
      for (double payload = 0; payload < 1e10; payload = payload * 2 + 1) {
        double now = time(kind, payload, group, slowMachine());
        EXPECT_GT(now, before);
        before = now;
      }
    }
}

TEST(CollectiveTime, MoreRanksTakeLonger) {
  for (StepKind kind :
       {StepKind::allReduce, StepKind::reduceScatter, StepKind::allToAll}) {
    double before = 0;
    for (int size = 2; size <= 1024; size *= 2) {
      double now = time(kind, 1e8, {size, 1}, slowMachine());
      EXPECT_GE(now, before) << nameOf(kind) << " over " << size;
      before = now;
    }
  }
}

std::string readInput(const std::string &name) {
  std::string path = MTPLAN_SOURCE_DIR "/tests/planner/inputs/";
  path += name;
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Compares the machine files' network figures with published measurements of
// all-reduces: 16 kinds of cluster, 2 to 1440 GPUs, 1 MiB to 1 GiB.
TEST(CollectiveTime, AgreesWithPublishedMeasurements) {
  using namespace mtplan::tools;
  std::vector<CollectiveRow> rows = readRows(
      readInput("collectives.csv"),
      readMachineMap(readInput("collective_machines.csv")), 1 << 20, 1 << 30);
  EXPECT_EQ(rows.size(), 277u);
  for (const CollectiveRow &row : rows)
    EXPECT_GT(row.predicted, 0) << row.hardware;
  EXPECT_LT(medianError(rows), 0.15);
  // Every kind of cluster also has a small median error of its own.
  for (const CollectiveRow &first : rows) {
    std::vector<CollectiveRow> same;
    for (const CollectiveRow &row : rows)
      if (row.hardware == first.hardware)
        same.push_back(row);
    EXPECT_LT(medianError(same), 0.15) << first.hardware;
  }
}

} // namespace
