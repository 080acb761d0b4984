//===- initial_values.cpp - Initial values of parameters ------------------===//

#include "runtime/training/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/random/draws.h"

namespace mtplan::runtime {
namespace {

/// Provides standard normal numbers by index. Caches the four numbers of a
/// draw, because indices are read in ascending order.
class Normals {
public:
  explicit Normals(const Stream &theStream) : stream(theStream) {}

  double at(std::int64_t index) {
    if (index / 4 != drawn) {
      drawn = index / 4;
      const PhiloxCounter words = stream.wordsAt(drawn);
      pair(words[0], words[1], 0);
      pair(words[2], words[3], 2);
    }
    return values[static_cast<std::size_t>(index % 4)];
  }

private:
  void pair(std::uint32_t first, std::uint32_t second, std::size_t at) {
    // Adding half a unit avoids log(0).
    const double radius =
        std::sqrt(-2.0 * std::log((first + 0.5) * kWordScale));
    const double angle = 2.0 * std::numbers::pi * second * kWordScale;
    values[at] = radius * std::cos(angle);
    values[at + 1] = radius * std::sin(angle);
  }

  const Stream stream;
  std::int64_t drawn = -1;
  std::array<double, 4> values = {};
};

/// Calls `write(local, global)` for the first element of each row along the
/// last dimension. The arguments are the element's row-major indices in the
/// shard and in the global tensor.
template <typename F> void forEachRow(const TensorView &piece, F &&write) {
  const std::size_t rank = piece.shape.size();
  const std::int64_t row = rank == 0 ? 1 : piece.shape.back();
  std::vector<std::int64_t> place(rank, 0);
  const std::int64_t elements = piece.elements();
  for (std::int64_t local = 0; local < elements; local += row) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < rank; ++d)
      global =
          global * piece.pieces[d].global + piece.pieces[d].offset + place[d];
    write(local, global);
    for (std::size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
      if (++place[d] < piece.shape[d])
        break;
      place[d] = 0;
    }
  }
}

template <typename T>
void fill(const Initialisation &how, std::string_view label, std::int64_t copy,
          std::string_view init, const TensorView &piece, T *out) {
  if (init == "zeros" || init == "ones") {
    std::fill_n(out, piece.elements(), init == "ones" ? T(1) : T(0));
    return;
  }
  double deviation = how.deviation;
  if (init == "residual")
    deviation /= std::sqrt(2.0 * static_cast<double>(how.layers));
  else if (init != "normal")
    throw std::invalid_argument("parameter '" + std::string(label) +
                                "' is to start as '" + std::string(init) +
                                "', can do normal, residual, ones and zeros");
  Normals normals(Stream::ofParameter(how.seed, label, copy));
  const std::int64_t row = piece.shape.empty() ? 1 : piece.shape.back();
  forEachRow(piece, [&](std::int64_t local, std::int64_t global) {
    for (std::int64_t i = 0; i < row; ++i)
      out[local + i] = static_cast<T>(deviation * normals.at(global + i));
  });
}

} // namespace

void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, float *out) {
  fill(how, label, copy, init, piece, out);
}

void fillInitial(const Initialisation &how, std::string_view label,
                 std::int64_t copy, std::string_view init,
                 const TensorView &piece, double *out) {
  fill(how, label, copy, init, piece, out);
}

} // namespace mtplan::runtime
