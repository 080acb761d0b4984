//===- carrier_test.cpp - Collectives and messages of devices -------------===//

#include <chrono>
#include <cstring>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/nccl.h"
#include "tests/runtime/communicator/cases.h"
#include "tests/runtime/cuda/collectives/device_ranks.h"

namespace mtplan::runtime::testing {
namespace {

using emulator::StreamOrder;

/// Returns a timeout that slow machines do not reach.
WorldOptions patient() {
  WorldOptions options;
  options.patience = std::chrono::minutes(10);
  return options;
}

/// Wraps a group, and waits for the rank's device after each call.
class Finished final : public Communicator {
public:
  Finished(std::unique_ptr<Communicator> theGroup, const DeviceRank &theRank)
      : group(std::move(theGroup)), rank(theRank) {}

  int size() const override { return group->size(); }
  int place() const override { return group->place(); }
  void allReduce(const std::string &label, const void *in, void *out,
                 Pieces pieces, Reduction reduction) override {
    group->allReduce(label, in, out, pieces, reduction);
    rank.finish();
  }
  void reduce(const std::string &label, const void *in, void *out,
              Pieces pieces, Reduction reduction, int root) override {
    group->reduce(label, in, out, pieces, reduction, root);
    rank.finish();
  }
  void allGather(const std::string &label, const void *in, void *out,
                 Pieces pieces) override {
    group->allGather(label, in, out, pieces);
    rank.finish();
  }
  void reduceScatter(const std::string &label, const void *in, void *out,
                     Pieces pieces, Reduction reduction) override {
    group->reduceScatter(label, in, out, pieces, reduction);
    rank.finish();
  }
  void allToAll(const std::string &label, const void *in, void *out,
                Pieces pieces) override {
    group->allToAll(label, in, out, pieces);
    rank.finish();
  }
  void broadcast(const std::string &label, void *data, Pieces pieces,
                 int root) override {
    group->broadcast(label, data, pieces, root);
    rank.finish();
  }

private:
  const std::unique_ptr<Communicator> group;
  const DeviceRank rank;
};

/// Runs the cases of cases.h in several groups. Returns the digest of the
/// results of each rank.
std::vector<std::uint64_t> digestsOn(Devices devices, int ranks, int count) {
  std::vector<std::uint64_t> digests(ranks);
  onDevices(devices, ranks, patient(), [&](DeviceRank &rank) {
    Bytes results;
    const auto run = [&](const std::string &name,
                         const std::vector<int> &members) {
      Finished group(rank.world.group(name, members), rank);
      const Bytes more = runCases(group, 7 + members.size(), count);
      results.insert(results.end(), more.begin(), more.end());
    };
    const std::vector<int> all = ranksUpTo(ranks);
    run("all", all);
    run("turned", {all.rbegin(), all.rend()});
    run("alone", {rank.world.rank()});
    digests[rank.world.rank()] = digestOf(results);
  });
  return digests;
}

std::vector<std::uint64_t> digestsOfThreads(int ranks, int count) {
  std::vector<std::uint64_t> digests(ranks);
  runOnThreads(ranks, patient(), [&](World &world) {
    Bytes results;
    const std::vector<int> all = ranksUpTo(ranks);
    for (const auto &members :
         {all, std::vector(all.rbegin(), all.rend()), {world.rank()}}) {
      const Bytes more =
          runCases(*world.group("g", members), 7 + members.size(), count);
      results.insert(results.end(), more.begin(), more.end());
    }
    digests[world.rank()] = digestOf(results);
  });
  return digests;
}

class Carriers : public ::testing::TestWithParam<Devices> {
protected:
  ~Carriers() override {
    emulator::setStreamOrder(StreamOrder::first);
    EXPECT_EQ(emulator::ncclCommunicators(), 0);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, Carriers,
                         ::testing::Values(Devices::one, Devices::oneEach),
                         [](const auto &of) {
                           return of.param == Devices::one ? "One" : "OneEach";
                         });

TEST_P(Carriers, HaveTheBitsOfHostTransports) {
  for (const int ranks : {1, 2, 3})
    EXPECT_EQ(digestsOn(GetParam(), ranks, 30), digestsOfThreads(ranks, 30))
        << ranks;
}

// A call reads what its stream has written before, and nothing that the stream
// writes later. The host does not wait in between.
TEST_P(Carriers, CallsAreInStreamOrder) {
  constexpr int kRanks = 3, kCalls = 6;
  constexpr std::int64_t kCount = 2500;
  for (const StreamOrder pace :
       {StreamOrder::first, StreamOrder::last, StreamOrder::asked}) {
    emulator::setStreamOrder(pace);
    onDevices(GetParam(), kRanks, patient(), [&](DeviceRank &rank) {
      const auto group = rank.world.group("all", ranksUpTo(kRanks));
      using Numbers = std::vector<std::int32_t>;
      Numbers in(kCount), sum(kCount), all(kRanks * kCount);
      std::vector<Numbers> sums(kCalls, sum), alls(kCalls, all);
      const auto copy = [&](Numbers &to, const Numbers &from) {
        cudaMemcpyAsync(to.data(), from.data(), 4 * from.size(),
                        cudaMemcpyDeviceToDevice, rank.stream());
      };
      for (int call = 0; call < kCalls; ++call) {
        emulator::enqueue(rank.stream(), [&in, call, own = rank.host.rank()] {
          std::fill(in.begin(), in.end(), 10 * call + own);
        });
        group->allReduce("sum", in.data(), sum.data(),
                         {ElementType::i32, 1, kCount}, Reduction::sum);
        group->allGather("all", in.data(), all.data(),
                         {ElementType::i32, 50, kCount / 50});
        copy(sums[call], sum);
        copy(alls[call], all);
        cudaMemsetAsync(sum.data(), 0xFF, 4 * sum.size(), rank.stream());
      }
      rank.finish();
      for (int call = 0; call < kCalls; ++call) {
        EXPECT_THAT(sums[call], ::testing::Each(30 * call + 3));
        for (std::size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(alls[call][i], 10 * call + static_cast<int>(i / 50 % 3));
      }
    });
  }
}

// A group is called on one stream and then on another.
TEST_P(Carriers, FollowTheSelectedStream) {
  onDevices(GetParam(), 2, patient(), [&](DeviceRank &rank) {
    const auto group = rank.world.group("all", {0, 1});
    rank.context->open(2);
    std::vector<float> in(4 * 64, 1.0F), other(4 * 64, 3.0F), one(4 * 32),
        two(4 * 32);
    emulator::setStreamOrder(StreamOrder::last);
    group->reduceScatter("one", in.data(), one.data(),
                         {ElementType::f32, 4, 32}, Reduction::sum);
    rank.context->select(1);
    group->reduceScatter("two", other.data(), two.data(),
                         {ElementType::f32, 4, 32}, Reduction::sum);
    rank.context->stream(1).synchronise();
    EXPECT_THAT(two, ::testing::Each(6.0F));
    rank.context->stream(0).synchronise();
    EXPECT_THAT(one, ::testing::Each(2.0F));
    rank.context->select(0);
  });
}

// Both ranks send all messages before they receive any. Each channel has
// more messages than the kPieces buffers of a line (nccl_mail.h). The channels
// are received in another order than they are sent.
TEST_P(Carriers, SendsAreBuffered) {
  constexpr int kMessages = 20;
  for (const StreamOrder pace :
       {StreamOrder::first, StreamOrder::last, StreamOrder::asked}) {
    emulator::setStreamOrder(pace);
    onDevices(GetParam(), 2, patient(), [&](DeviceRank &rank) {
      const int own = rank.host.rank(), other = 1 - own;
      std::vector<std::int32_t> data(100);
      for (int n = 0; n < kMessages; ++n)
        for (const int channel : {0, 5}) {
          emulator::enqueue(rank.stream(), [&data, own, n, channel] {
            std::fill(data.begin(), data.end(), 1000 * own + 10 * n + channel);
          });
          rank.world.send("h", data.data(), 4 * (100 - n % 3), other, channel);
        }
      for (const int channel : {5, 0})
        for (int n = 0; n < kMessages; ++n) {
          std::vector<std::int32_t> got(100 - n % 3);
          rank.world.receive("h", got.data(), 4 * (100 - n % 3), other,
                             channel);
          rank.finish();
          EXPECT_THAT(got, ::testing::Each(1000 * other + 10 * n + channel));
        }
      rank.world.send("nothing", nullptr, 0, other, 7);
      rank.world.receive("nothing", nullptr, 0, other, 7);
      rank.world.barrier("end");
    });
  }
}

// The sender's copy of a message (nccl_mail.h) is overwritten only after the
// receiver's device has read it. The receiver's host calls much earlier.
TEST_P(Carriers, MessagesInTransitAreNotOverwritten) {
  emulator::setStreamOrder(StreamOrder::asked);
  onDevices(GetParam(), 2, patient(), [&](DeviceRank &rank) {
    constexpr int kMessages = 6;
    std::vector<std::int32_t> data(1);
    std::vector<std::vector<std::int32_t>> got(kMessages, data);
    const auto send = [&](int n) {
      emulator::enqueue(rank.stream(), [&data, n] { data[0] = n; });
      rank.world.send("h", data.data(), 4, 1, 0);
    };
    const auto receive = [&](int n) {
      rank.world.receive("h", got[n].data(), 4, 0, 0);
    };
    const bool sends = rank.host.rank() == 0;
    for (int n = 0; n < 2; ++n) {
      sends ? send(n) : receive(n);
      if (n == 0)
        rank.finish();
      rank.host.barrier("asked for");
    }
    for (int n = 2; n < kMessages && sends; ++n)
      send(n);
    if (sends)
      rank.finish();
    rank.host.barrier("sent");
    for (int n = 2; n < kMessages && !sends; ++n)
      receive(n);
    rank.finish();
    for (int n = 0; n < kMessages && !sends; ++n)
      EXPECT_EQ(got[n][0], n);
  });
}

// A send must not block its stream, because stages send ahead.
TEST_P(Carriers, SendsDoNotBlockStreams) {
  onDevices(GetParam(), 2, patient(), [&](DeviceRank &rank) {
    float value = 1.0F, got = 0.0F;
    if (rank.host.rank() == 0) {
      rank.world.send("h", &value, 4, 1, 0);
      rank.finish();
      rank.host.barrier("sent");
    } else {
      rank.host.barrier("sent");
      rank.world.receive("h", &got, 4, 0, 0);
      rank.finish();
      EXPECT_EQ(got, 1.0F);
    }
  });
}

TEST_P(Carriers, ManyGroupsShareRanks) {
  onDevices(GetParam(), 4, patient(), [&](DeviceRank &rank) {
    const int own = rank.host.rank();
    const int row = own / 2 * 2, column = own % 2;
    const auto rows = rank.world.group("tp", {row, row + 1});
    const auto columns = rank.world.group("dp", {column, column + 2});
    std::int32_t in = 1 << (8 * own), sum = 0;
    for (int i = 0; i < 20; ++i) {
      const auto reduce = [&](Communicator &group) {
        group.allReduce("s", &in, &sum, {ElementType::i32, 1, 1},
                        Reduction::sum);
        rank.finish();
        return sum;
      };
      EXPECT_EQ(reduce(*columns), column == 0 ? 0x00010001 : 0x01000100);
      EXPECT_EQ(reduce(*rows), row == 0 ? 0x00000101 : 0x01010000);
    }
  });
}

/// Returns the error of makeCarrier(). Rank r uses device devices[r]. The ranks
/// in `registering` register memory, and those in `calling` do not group calls.
std::string errorOf(const std::vector<int> &devices,
                    const std::set<int> &registering = {},
                    const std::set<int> &calling = {}) {
  emulator::setDevices(8);
  std::vector<std::string> errors(devices.size());
  runOnThreads(static_cast<int>(devices.size()), patient(), [&](World &host) {
    cudaSetDevice(devices[host.rank()]);
    const auto context = std::make_shared<cuda::Context>();
    context->registersMemory = registering.contains(host.rank());
    context->joinsCollectives = !calling.contains(host.rank());
    try {
      cuda::makeCarrier(host, context);
    } catch (const CommunicationError &error) {
      errors[host.rank()] = error.what();
    }
  });
  for (const std::string &one : errors)
    EXPECT_EQ(one, errors[0]);
  return errors[0];
}

TEST(CarrierTest, UnsuitableDevicesAreRejectedWithAdvice) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  EXPECT_EQ(errorOf({0, 0, 0}), "");
  EXPECT_EQ(errorOf({4, 1, 7}), "");
  EXPECT_THAT(errorOf({3, 1, 3, 0}),
              AllOf(StartsWith("ranks 0 and 2 share a GPU of host "),
                    HasSubstr(", and the other 2 do not: give each rank a GPU "
                              "of its own, or run all ranks as threads of one "
                              "process on one GPU")));
  EXPECT_THAT(errorOf(std::vector<int>(65, 2)),
              HasSubstr("65 ranks share a GPU; at most 64 can"));
}

TEST(CarrierTest, RegistrationMustBeTheSameOnAllRanks) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  EXPECT_EQ(errorOf({4, 1, 7}, {0, 1, 2}), "");
  EXPECT_EQ(errorOf({0}, {0}), "");
  EXPECT_EQ(errorOf({4, 1, 7}, {1}),
            "memory is registered with NCCL by rank 1 but not by rank 0: set "
            "MTPLAN_NCCL_REGISTER to the same value on all ranks");
  EXPECT_THAT(errorOf({4, 1, 7}, {0, 1}),
              StartsWith("memory is registered with NCCL by rank 0 but not by "
                         "rank 2"));
  EXPECT_THAT(
      errorOf({0, 0}, {0, 1}),
      AllOf(StartsWith("ranks 0 and 1 share a GPU of host "),
            HasSubstr(", which use no memory that is registered with "
                      "NCCL (set MTPLAN_NCCL_REGISTER=0 to run without")));
}

// NCCL would hang if only some ranks grouped calls.
TEST(CarrierTest, GroupingMustBeTheSameOnAllRanks) {
  EXPECT_EQ(errorOf({4, 1, 7}, {}, {0, 1, 2}), "");
  EXPECT_EQ(errorOf({4, 1, 7}, {}, {0, 1}),
            "collectives are grouped by rank 2 but not by rank 0: set "
            "MTPLAN_JOINT_COLLECTIVES to the same value on all ranks");
}

} // namespace
} // namespace mtplan::runtime::testing
