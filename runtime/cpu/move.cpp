//===- move.cpp - Slices, transpositions and copies -----------------------===//

#include <optional>

#include "runtime/backend/strided_source.h"
#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {
namespace {

/// Implements slice, piece, transpose, mask, copy and zeros as copies of byte
/// runs. Runs without a source are cleared.
class Move : public Kernel {
public:
  Move(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)) {
    const TensorView &result = spec.outputs[0];
    width = bytesOf(result.type);
    length = result.elements() * width;
    clears = spec.kernel == "zeros" ||
             (spec.kernel == "mask" && spec.integer("place", 0) != 0);
    if (spec.kernel == "slice" || spec.kernel == "piece" ||
        spec.kernel == "transpose") {
      source.emplace(spec);
      length = source->length * width;
      runs = source->runs();
    }
  }

  void run(const Invocation &call) override {
    auto *to = static_cast<std::byte *>(call.outputs[0]);
    const auto *from =
        clears ? nullptr : static_cast<const std::byte *>(call.inputs[0]);
    const std::int64_t pieces = (length + kPiece - 1) / kPiece;
    context->forRange(
        runs * pieces, std::max<std::int64_t>(1, kPiece / length),
        [&](std::int64_t first, std::int64_t count, int) {
          for (std::int64_t i = first; i < first + count; ++i) {
            const std::int64_t run = i / pieces, begin = i % pieces * kPiece;
            const auto bytes =
                static_cast<std::size_t>(std::min(kPiece, length - begin));
            std::byte *into = to + run * length + begin;
            if (from)
              std::memcpy(into,
                          from + (source ? source->at(run) * width : 0) + begin,
                          bytes);
            else
              std::memset(into, 0, bytes);
          }
        });
  }

private:
  static constexpr std::int64_t kPiece = 1 << 18; ///< bytes per task

  const SharedContext context;
  std::optional<StridedSource> source;
  std::int64_t runs = 1;
  std::int64_t width, length; ///< bytes per element and per run
  bool clears;
};

} // namespace

MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "mask" && spec.inputs[0].type != spec.outputs[0].type)
    return nullptr;
  return std::make_unique<Move>(spec, context);
}

} // namespace mtplan::runtime::cpu
