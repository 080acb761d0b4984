//===- link_runs.cpp - Chooses collectives to measure ---------------------===//

#include "runtime/calibration/link_runs.h"

#include <algorithm>
#include <cassert>

namespace mtplan::runtime {

namespace {

void addOnce(std::vector<GroupShape> &all, GroupShape one) {
  if (one.ranks > 1 && std::ranges::find(all, one) == all.end())
    all.push_back(one);
}

// Holds the buffers of collectives and messages. Short messages alternate among
// offsets, so that caches hold no larger part of the data than in a step.
struct Buffers {
  Allocation in, out;
  std::int64_t bytes;
  Buffers(Memory &memory, std::int64_t all)
      : in(memory, static_cast<std::size_t>(all)),
        out(memory, static_cast<std::size_t>(all)), bytes(all) {
    const std::vector<std::byte> zeros(kPiece);
    for (const Allocation *one : {&in, &out})
      for (std::int64_t done = 0; done < bytes; done += kPiece)
        memory.upload(one->get() + done, zeros.data(),
                      static_cast<std::size_t>(std::min(kPiece, bytes - done)));
  }

  /// Returns the offset of run `number` for a message of `size` bytes.
  std::int64_t turn(std::int64_t number, std::int64_t size) const {
    const std::int64_t apart =
        (size + kAlignment - 1) / kAlignment * kAlignment;
    return number % std::max<std::int64_t>(1, bytes / apart) * apart;
  }

private:
  static constexpr std::int64_t kPiece = 1 << 16;
};

class Links {
public:
  Links(World &w, Memory &memory, std::int64_t largest)
      : world(w), sizes(messageSizes(largest)),
        buffers(std::make_shared<Buffers>(memory, sizes.back())) {}

  void add(GroupShape shape) {
    const std::shared_ptr<Communicator> group =
        world.group("calibration of " + std::to_string(shape.ranks) +
                        " every " + std::to_string(shape.stride),
                    groupOf(shape, world.rank()));
    const auto all = [&](const char *kernel, auto &&call) {
      for (const std::int64_t size : sizes) {
        // The size is rounded down, so that all ranks have equally many f32
        // elements.
        const std::int64_t piece = size / (4 * shape.ranks);
        if (piece == 0)
          continue;
        MeasuredRun run;
        run.as = MeasuredAs::collective;
        run.kernel = kernel;
        run.bytes = piece * 4 * shape.ranks;
        run.ranks = shape.ranks;
        run.stride = shape.stride;
        const std::int64_t bytes = run.bytes;
        runs.push_back(
            {std::move(run), [call, piece, bytes, ranks = shape.ranks, group,
                              own = buffers](std::int64_t number) {
               const std::int64_t at = own->turn(number, bytes);
               call(*group, own->in.get() + at, own->out.get() + at, piece,
                    ranks);
             }});
      }
    };
    constexpr ElementType kType = ElementType::f32;
    constexpr const char *kLabel = "calibration";
    all("all_reduce", [](Communicator &c, const void *in, void *out,
                         std::int64_t piece, int ranks) {
      c.allReduce(kLabel, in, out, {kType, 1, piece * ranks}, Reduction::sum);
    });
    all("all_gather", [](Communicator &c, const void *in, void *out,
                         std::int64_t piece, int) {
      c.allGather(kLabel, in, out, {kType, 1, piece});
    });
    all("reduce_scatter", [](Communicator &c, const void *in, void *out,
                             std::int64_t piece, int) {
      c.reduceScatter(kLabel, in, out, {kType, 1, piece}, Reduction::sum);
    });
    all("all_to_all", [](Communicator &c, const void *in, void *out,
                         std::int64_t piece, int) {
      c.allToAll(kLabel, in, out, {kType, 1, piece});
    });
  }

  // Adds messages on the ring of all ranks, from each rank r to r + `stride`.
  void addMessages(int stride) {
    const int to = (world.rank() + stride) % world.size();
    const int from = (world.rank() + world.size() - stride) % world.size();
    for (const std::int64_t size : sizes) {
      MeasuredRun run;
      run.as = MeasuredAs::message;
      run.kernel = "send";
      run.bytes = size;
      run.stride = stride;
      runs.push_back(
          {std::move(run),
           [&all = world, to, from, size, own = buffers](std::int64_t number) {
             const std::int64_t at = own->turn(number, size);
             all.send("calibration", own->in.get() + at, size, to, 0);
             all.receive("calibration", own->out.get() + at, size, from, 0);
           }});
    }
  }

  std::vector<LinkRun> runs;

private:
  World &world;
  const std::vector<std::int64_t> sizes;
  const std::shared_ptr<Buffers> buffers;
};

} // namespace

std::vector<GroupShape> groupShapesOf(int ranks, int ranksOfHost) {
  assert(ranksOfHost >= 1 && ranks % ranksOfHost == 0);
  std::vector<GroupShape> all;
  for (int group = 2; group <= ranksOfHost; group *= 2)
    if (ranksOfHost % group == 0)
      addOnce(all, {group, 1});
  addOnce(all, {ranksOfHost, 1});
  addOnce(all, {ranks / ranksOfHost, ranksOfHost});
  addOnce(all, {ranks, 1});
  return all;
}

std::vector<int> groupOf(GroupShape shape, int rank) {
  const int block = shape.ranks * shape.stride;
  const int first = rank / block * block + rank % shape.stride;
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.ranks));
  for (int i = 0; i < shape.ranks; ++i)
    ranks.push_back(first + i * shape.stride);
  return ranks;
}

std::vector<std::int64_t> messageSizes(std::int64_t largest) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 4096; bytes < largest; bytes *= 8)
    sizes.push_back(bytes);
  sizes.push_back(largest);
  return sizes;
}

std::vector<LinkRun> linkRunsOf(World &world, Memory &memory, int ranksOfHost,
                                std::int64_t largest) {
  if (world.size() == 1)
    return {};
  Links links(world, memory, largest);
  for (const GroupShape shape : groupShapesOf(world.size(), ranksOfHost))
    links.add(shape);
  links.addMessages(1);
  if (ranksOfHost > 1 && ranksOfHost < world.size())
    links.addMessages(ranksOfHost);
  return std::move(links.runs);
}

} // namespace mtplan::runtime
