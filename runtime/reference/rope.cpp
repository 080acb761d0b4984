//===- rope.cpp - Reference kernel of rotary positions
//---------------------===//

#include <cmath>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

void rope(Call &call) {
  const std::span<const double> input = call.in[0];
  call.copy(0, 0);
  const std::int64_t rotary = call.attributes.integer("rotary_dim", 0);
  const std::int64_t width = call.attributes.integer("head_dim", 1);
  const double theta = call.attributes.number("theta", 1e4);
  const bool interleaved = call.attributes.flag("interleaved");
  const bool inverse = call.attributes.flag("inverse");
  const std::int64_t half = rotary / 2;
  const std::int64_t positions = call.inShape(0)[1];
  const std::int64_t heads = call.inShape(0)[2] / width;
  const std::int64_t rows = call.inShape(0)[0] * positions * heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position =
        call.inPiece(0, 1).offset + row / heads % positions;
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) /
                                                   static_cast<double>(rotary));
      const double angle =
          static_cast<double>(position) * (inverse ? -frequency : frequency);
      const std::int64_t x = row * width + (interleaved ? 2 * i : i);
      const std::int64_t y = x + (interleaved ? 1 : half);
      call.out[0][x] = input[x] * std::cos(angle) - input[y] * std::sin(angle);
      call.out[0][y] = input[x] * std::sin(angle) + input[y] * std::cos(angle);
    }
  }
}

} // namespace

void addRope(KernelTable &table) { table["rope"] = rope; }

} // namespace mtplan::runtime::reference
