//===- piece_filler_test.cpp - Values drawn once for several tensors ------===//

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/training/initial_values.h"
#include "runtime/training/piece_filler.h"
#include "tests/runtime/backend/counting_memory.h"

namespace mtplan::runtime {
namespace {

using Bytes = std::vector<std::byte>;

std::size_t sizeOf(const TensorView &piece, ElementType type) {
  return static_cast<std::size_t>(piece.elements() * bytesOf(type));
}

/// Holds the bytes of a weight (bf16), its master (f32), and a third copy (f64)
/// in the host's memory.
struct Three {
  Bytes bf16, f32, f64;
  std::int64_t drawn = 0;
};

// Returns the values, drawn in one call and written type by type.
Three plain(const TensorView &piece, std::int64_t copy) {
  std::vector<double> values(static_cast<std::size_t>(piece.elements()));
  fillInitial({}, "w", copy, "normal", piece, values.data());
  Three all{Bytes(sizeOf(piece, ElementType::bf16)),
            Bytes(sizeOf(piece, ElementType::f32)),
            Bytes(sizeOf(piece, ElementType::f64))};
  for (std::int64_t i = 0; i < piece.elements(); ++i) {
    const double value = values[static_cast<std::size_t>(i)];
    writeElement(ElementType::bf16, all.bf16.data(), i, value);
    writeElement(ElementType::f32, all.f32.data(), i, value);
    writeElement(ElementType::f64, all.f64.data(), i, value);
  }
  return all;
}

Three filled(const TensorView &piece, int threads, Memory &memory,
             std::int64_t copy = 0) {
  Three all{Bytes(sizeOf(piece, ElementType::bf16)),
            Bytes(sizeOf(piece, ElementType::f32)),
            Bytes(sizeOf(piece, ElementType::f64))};
  std::atomic<std::int64_t> drawn = 0;
  PieceFiller filler(hostMemory(), threads);
  filler.fill(piece,
              {{ElementType::bf16, all.bf16.data(), &memory},
               {ElementType::f32, all.f32.data(), &memory},
               {ElementType::f64, all.f64.data(), &hostMemory()}},
              [&](const TensorView &part, double *values) {
                drawn += part.elements();
                fillInitial({}, "w", copy, "normal", part, values);
              });
  all.drawn = drawn;
  return all;
}

// The first shard needs several uploads. The others have rows longer than a
// part (DrawPart), many short rows, less than one part, or one element.
const TensorView kPieces[] = {
    {{}, {1100, 4000}, {{2200, 3300}, {0, 8000}}},
    {{}, {2, 70'001}, {{3, 5}, {7, 80'000}}},
    {{}, {2, 3, 40'000}, {{2, 4}, {1, 9}, {40'000, 80'000}}},
    {{}, {5, 7, 11, 401}, {{0, 5}, {7, 14}, {0, 11}, {0, 401}}},
    {{}, {90'000}, {{10'000, 100'000}}},
    {{}, {3, 5}, {{3, 9}, {5, 10}}},
    {{}, {40, 900}, {}},
    {{}, {}, {}}};

TEST(PieceFiller, FillsAllTensorsWithTheSameValues) {
  for (const TensorView &piece : kPieces) {
    TensorView whole = piece;
    if (whole.pieces.empty())
      for (std::int64_t size : whole.shape)
        whole.pieces.push_back({0, size});
    const Three expected = plain(whole, 3);
    CountingMemory far;
    for (const auto &[memory, threads] :
         {std::pair<Memory *, int>{&far, 5}, {&hostMemory(), 5}, {&far, 1}}) {
      SCOPED_TRACE(testing::PrintToString(piece.shape) + ", threads " +
                   std::to_string(threads));
      const Three all = filled(piece, threads, *memory, 3);
      EXPECT_EQ(all.drawn, piece.elements());
      EXPECT_TRUE(all.bf16 == expected.bf16);
      EXPECT_TRUE(all.f32 == expected.f32);
      EXPECT_TRUE(all.f64 == expected.f64);
    }
  }
}

TEST(PieceFiller, UploadsMegabytesAtATime) {
  CountingMemory far;
  filled(kPieces[0], 2, far); // 4.4 million elements
  EXPECT_EQ(far.uploads, 4);
  EXPECT_GE(far.longest, std::size_t{8} << 20);
  EXPECT_LE(far.longest, std::size_t{16} << 20);
}

TEST(PieceFiller, RethrowsErrorsOfThreads) {
  Bytes bytes(sizeOf(kPieces[0], ElementType::bf16));
  for (int threads : {1, 4})
    EXPECT_THROW(PieceFiller(hostMemory(), threads)
                     .fill(kPieces[0],
                           {{ElementType::bf16, bytes.data(), &hostMemory()}},
                           [](const TensorView &part, double *) {
                             if (part.pieces[0].offset > 2300)
                               throw std::invalid_argument("no such");
                           }),
                 std::invalid_argument);
}

TEST(PieceFiller, FillsNothingOfNothing) {
  PieceFiller(hostMemory(), 2)
      .fill({{}, {0, 4}, {{0, 0}, {0, 4}}},
            {{ElementType::f32, nullptr, &hostMemory()}},
            [](const TensorView &, double *) { FAIL(); });
}

} // namespace
} // namespace mtplan::runtime
