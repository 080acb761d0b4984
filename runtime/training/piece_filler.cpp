//===- piece_filler.cpp - Fills tensors with computed values --------------===//

#include "runtime/training/piece_filler.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <system_error>

#include "base/index.h"
#include "runtime/backend/element.h"

namespace mtplan::runtime {

using base::sized;

namespace {

// These constants limit the elements of a part and of a batch. A part takes
// less than a millisecond, and its doubles fit a cache. Computing a batch takes
// much longer than starting threads or an upload.
constexpr std::int64_t kPart = 1 << 15, kBatch = 1 << 22;

/// Divides a shard into contiguous parts. A part has one index of each
/// dimension before `cut`, a range of indices of dimension `cut`, and all
/// indices of the dimensions after `cut`.
class Parts {
public:
  explicit Parts(const TensorView &thePiece)
      : piece(thePiece), cut(piece.shape.size()) {
    if (piece.pieces.empty())
      for (std::int64_t size : piece.shape)
        piece.pieces.push_back({0, size});
    while (cut > 0 && inner * piece.shape[cut - 1] <= kPart)
      inner *= piece.shape[--cut];
    if (cut == 0) // one part has all dimensions
      return;
    length = piece.shape[--cut];
    step = std::max<std::int64_t>(1, kPart / inner);
    ofLength = (length + step - 1) / step;
    for (std::size_t d = 0; d < cut; ++d)
      outer *= piece.shape[d];
  }

  std::int64_t number() const { return outer * ofLength; }
  std::int64_t elements() const { return step * inner; }
  /// Returns the index of a part's first element within the shard.
  /// startOf(number()) is the end of the shard.
  std::int64_t startOf(std::int64_t part) const {
    return (part / ofLength * length + part % ofLength * step) * inner;
  }

  TensorView viewOf(std::int64_t part) const {
    TensorView view = piece;
    if (number() == 1)
      return view;
    const std::int64_t at = part % ofLength * step;
    view.pieces[cut].offset += at;
    view.shape[cut] = std::min(step, length - at);
    std::int64_t place = part / ofLength;
    for (std::size_t d = cut; d-- > 0;) {
      view.pieces[d].offset += place % piece.shape[d];
      view.shape[d] = 1;
      place /= piece.shape[d];
    }
    return view;
  }

private:
  TensorView piece;
  std::size_t cut;
  std::int64_t inner = 1;            ///< elements per index of dimension `cut`
  std::int64_t length = 1, step = 1; ///< extents of shard and part along `cut`
  /// `ofLength` parts divide dimension `cut`. `outer` is the product of the
  /// extents before that dimension.
  std::int64_t ofLength = 1, outer = 1;
};

std::int64_t staged(ElementType type, std::int64_t elements) {
  return (elements * bytesOf(type) + kAlignment - 1) / kAlignment * kAlignment;
}

/// Calls `work(task)` for every task in [first, end), on several threads.
template <typename Work>
void forEach(std::int64_t first, std::int64_t end, int threads,
             const Work &work) {
  std::atomic<std::int64_t> next{first};
  const auto takeThem = [&] {
    for (std::int64_t task = next++; task < end; task = next++)
      work(task);
  };
  std::vector<std::future<void>> others;
  for (int thread = 1; thread < std::min<std::int64_t>(threads, end - first);
       ++thread)
    try {
      others.push_back(std::async(std::launch::async, takeThem));
    } catch (const std::system_error &) {
      break; // the threads started so far suffice
    }
  takeThem();
  for (std::future<void> &other : others)
    other.get();
}

void write(ElementType type, std::byte *to, std::int64_t first,
           const std::vector<double> &values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    writeElement(type, to, first + i, values[sized(i)]);
}

} // namespace

void PieceFiller::fill(const TensorView &piece,
                       const std::vector<Filled> &tensors,
                       const DrawPart &draw) {
  if (piece.elements() == 0)
    return;
  const Parts parts(piece);
  const std::int64_t ofBatch = kBatch / parts.elements();
  const std::int64_t most =
      std::min(piece.elements(), ofBatch * parts.elements());
  std::int64_t bytes = 0;
  for (const Filled &tensor : tensors)
    if (!tensor.memory->isHosts())
      bytes += staged(tensor.type, most);
  std::byte *const near = bytes > 0 ? stageOf(bytes) : nullptr;
  for (std::int64_t first = 0; first < parts.number(); first += ofBatch) {
    const std::int64_t end = std::min(first + ofBatch, parts.number());
    const std::int64_t start = parts.startOf(first);
    std::vector<std::byte *> to; // addresses of element `start`, by tensor
    std::byte *next = near;
    for (const Filled &tensor : tensors)
      if (tensor.memory->isHosts()) {
        to.push_back(tensor.data + start * bytesOf(tensor.type));
      } else {
        to.push_back(next);
        next += staged(tensor.type, most);
      }
    forEach(first, end, threads, [&](std::int64_t part) {
      thread_local std::vector<double> values;
      const TensorView view = parts.viewOf(part);
      values.resize(sized(view.elements()));
      draw(view, values.data());
      for (std::size_t t = 0; t < tensors.size(); ++t)
        write(tensors[t].type, to[t], parts.startOf(part) - start, values,
              view.elements());
    });
    const std::int64_t count = parts.startOf(end) - start;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const Filled &tensor = tensors[t];
      if (!tensor.memory->isHosts())
        tensor.memory->upload(tensor.data + start * bytesOf(tensor.type), to[t],
                              sized(count * bytesOf(tensor.type)));
    }
  }
}

std::byte *PieceFiller::stageOf(std::int64_t bytes) {
  if (bytes > stageBytes) {
    stage.reset();
    stage.emplace(staging, sized(bytes));
    stageBytes = bytes;
  }
  return stage->get();
}

} // namespace mtplan::runtime
