//===- registration_test.cpp - Memory that is registered with NCCL --------===//

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/device.h"
#include "tests/emulator/nccl.h"
#include "tests/runtime/cuda/collectives/device_ranks.h"

namespace mtplan::runtime::testing {
namespace {

using emulator::NcclUse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 3;
constexpr std::size_t kRoom = 1 << 12; ///< bytes of an arena
constexpr std::int64_t kGranule = 2 << 20;

/// Holds a rank's memory for operands and for results. It is allocated before
/// the rank's world and freed after it.
struct Arenas {
  explicit Arenas(const cuda::SharedContext &context)
      : memory(cuda::makeDeviceMemory(context)),
        in(memory->ofCollectives(), kRoom),
        out(memory->ofCollectives(), kRoom) {}
  void registerWith(Communicator &group) const {
    for (const Allocation *one : {&in, &out})
      group.registerMemory(one->get(), kRoom);
  }
  const std::unique_ptr<Memory> memory;
  Allocation in, out;
};

struct RankWithArenas {
  World &host;
  const cuda::SharedContext &context;
  const Arenas &arenas;
  World &world;
};

/// Runs ranks with a device each. Returns the error of the run.
std::string
onRanks(bool registers, const std::function<void(RankWithArenas)> &body,
        std::chrono::milliseconds patience = std::chrono::minutes(10)) {
  emulator::setDevices(kRanks);
  emulator::takeNcclUse();
  WorldOptions options;
  options.patience = patience;
  options.ending = std::chrono::seconds(60);
  std::string thrown;
  try {
    runOnThreads(kRanks, options, [&](World &host) {
      cudaSetDevice(host.rank());
      const auto context = std::make_shared<cuda::Context>();
      context->registersMemory = registers;
      const Arenas arenas(context);
      const std::unique_ptr<World> world = cuda::makeCarrier(host, context);
      body({host, context, arenas, *world});
    });
  } catch (const std::exception &error) {
    thrown = error.what();
  }
  EXPECT_EQ(emulator::ncclCommunicators(), 0);
  EXPECT_EQ(emulator::ncclAllocations(), 0);
  EXPECT_THAT(emulator::takeNcclMisuses(), IsEmpty());
  return thrown;
}

/// Makes one call of each kind with `outer` rows. Returns the results.
std::vector<float> callsOf(const RankWithArenas &rank, std::int64_t outer) {
  const auto group = rank.world.group("tp", {0, 1, 2});
  const Arenas &arenas = rank.arenas;
  rank.arenas.registerWith(*group);
  const Pieces pieces{ElementType::f32, outer, 5};
  std::vector<float> values(kRoom / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((rank.host.rank() + 1) * (i % 31));
  std::vector<float> all;
  const auto call = [&](const auto &make) {
    arenas.memory->upload(arenas.in.get(), values.data(), kRoom);
    make();
    std::vector<float> came(values.size());
    arenas.memory->download(came.data(), arenas.out.get(), kRoom);
    all.insert(all.end(), came.begin(), came.end());
  };
  void *const from = arenas.in.get(), *const to = arenas.out.get();
  call([&] { group->allReduce("a", from, to, pieces, Reduction::sum); });
  call([&] { group->reduce("b", from, to, pieces, Reduction::max, 1); });
  call([&] { group->allGather("c", from, to, pieces); });
  call([&] { group->reduceScatter("d", from, to, pieces, Reduction::sum); });
  call([&] { group->allToAll("e", from, to, pieces); });
  call([&] { group->broadcast("f", to, pieces, 2); });
  return all;
}

// The growing buffer for transpositions is registered, too.
TEST(RegistrationTest, RegisteredMemoryKeepsBits) {
  constexpr int kMessages = 2 * kRanks * kRanks; // NCCL calls per all-to-all
  for (const std::int64_t outer : {1, 4}) {
    std::array<std::vector<float>, kRanks> plain, registered;
    for (const bool registers : {false, true}) {
      EXPECT_EQ(onRanks(registers,
                        [&](const RankWithArenas &rank) {
                          auto &came = registers ? registered : plain;
                          came.at(rank.host.rank()) = callsOf(rank, outer);
                        }),
                "");
      EXPECT_EQ(emulator::takeNcclUse(),
                registers ? (NcclUse{kRanks, 0, 0, kMessages})
                          : (NcclUse{0, 0, kRanks}));
    }
    EXPECT_EQ(registered, plain);
    EXPECT_THAT(plain[0], ::testing::Contains(::testing::Gt(0.0F)));
  }
}

TEST(RegistrationTest, TheSameMemoryIsRegisteredWithEachGroup) {
  EXPECT_EQ(onRanks(true,
                    [](const RankWithArenas &rank) {
                      for (const char *name : {"tp", "dp"}) {
                        const auto group = rank.world.group(name, {0, 1, 2});
                        rank.arenas.registerWith(*group);
                        group->allReduce(
                            name, rank.arenas.in.get(), rank.arenas.out.get(),
                            {ElementType::f32, 1, 9}, Reduction::sum);
                      }
                    }),
            "");
  EXPECT_EQ(emulator::takeNcclUse(), (NcclUse{2 * kRanks}));
}

TEST(RegistrationTest, RoundedUpBytesAreReported) {
  onRanks(true, [](const RankWithArenas &rank) {
    Memory &memory = *rank.arenas.memory;
    EXPECT_EQ(memory.roundedForCollectives().asked, 2 * kRoom);
    EXPECT_EQ(memory.roundedForCollectives().taken, 2 * kGranule);
    const Allocation other(memory, kRoom);
    EXPECT_EQ(memory.roundedForCollectives().asked, 2 * kRoom);
  });
  onRanks(false, [](const RankWithArenas &rank) {
    Memory &memory = *rank.arenas.memory;
    EXPECT_EQ(&memory.ofCollectives(), &memory);
    EXPECT_EQ(memory.roundedForCollectives().taken, 0);
  });
}

TEST(RegistrationTest, EnvironmentSwitchesRegistrationOn) {
  const auto isWanted = [](const char *value) {
    setenv("MTPLAN_NCCL_REGISTER", value, 1);
    const bool wanted = cuda::registrationIsWanted();
    unsetenv("MTPLAN_NCCL_REGISTER");
    return wanted;
  };
  EXPECT_FALSE(cuda::registrationIsWanted());
  EXPECT_FALSE(isWanted(""));
  EXPECT_FALSE(isWanted("0"));
  EXPECT_TRUE(isWanted("1"));
}

TEST(RegistrationTest, FailedAllocationIsAnError) {
  emulator::NcclFaults faults;
  faults.failAllocation(1);
  EXPECT_EQ(onRanks(true, [](const RankWithArenas &) {}),
            "NCCL does not allocate 4096 bytes: unhandled cuda error "
            "(set MTPLAN_NCCL_REGISTER=0 to run without registered memory)");
}

TEST(RegistrationTest, FailedRegistrationIsAnError) {
  emulator::NcclFaults faults;
  faults.failRegistration(1);
  EXPECT_EQ(onRanks(true,
                    [](const RankWithArenas &rank) {
                      callsOf(rank, 1);
                      rank.world.barrier("end");
                    }),
            "group \"tp\" (ranks 0 1 2): 4096 bytes of rank 1 are not "
            "registered: NCCL reports: unhandled system error (emulated: the "
            "last error) (set MTPLAN_NCCL_REGISTER=0 to run without registered "
            "memory)");
}

// After a failed registration, the communicator can still be destroyed without
// an error.
TEST(RegistrationTest, RankMayContinueWithoutRegistration) {
  emulator::NcclFaults faults;
  for (int rank = 0; rank < kRanks; ++rank)
    faults.failRegistration(rank);
  EXPECT_EQ(onRanks(true,
                    [](const RankWithArenas &rank) {
                      const auto group = rank.world.group("tp", {0, 1, 2});
                      EXPECT_THROW(rank.arenas.registerWith(*group),
                                   CommunicationError);
                    }),
            "");
}

// If a call hangs, its communicator is aborted with its registrations, before
// the memory is freed.
TEST(RegistrationTest, AbortReleasesRegistrations) {
  emulator::NcclFaults faults;
  EXPECT_THAT(
      onRanks(
          true,
          [&](const RankWithArenas &rank) {
            const auto group = rank.world.group("tp", {0, 1, 2});
            rank.arenas.registerWith(*group);
            rank.host.barrier("then");
            faults.silence(1);
            group->allGather("h", rank.arenas.in.get(), rank.arenas.out.get(),
                             {ElementType::f32, 4, 5});
            rank.context->stream().synchronise();
            rank.world.check();
          },
          std::chrono::milliseconds(300)),
      AllOf(HasSubstr("\"h\" of 4 x 5 f32"), HasSubstr("has not ended")));
}

} // namespace
} // namespace mtplan::runtime::testing
