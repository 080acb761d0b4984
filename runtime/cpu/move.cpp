//===- move.cpp - Bytes from here to there --------------------------------===//

#include "runtime/cpu/families.h"

namespace mtplan::runtime::cpu {
namespace {

/// slice, mask, copy and zeros: `strips` runs of bytes, the same distance
/// apart. Without a source they are cleared.
class Move : public Kernel {
public:
  Move(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)) {
    const TensorView &result = spec.outputs[0];
    length = stride = result.elements() * bytesOf(result.type);
    if (spec.kernel == "zeros" ||
        (spec.kernel == "mask" && spec.integer("place", 0) != 0))
      clears = true;
    if (spec.kernel != "slice")
      return;
    const auto dim = static_cast<std::size_t>(spec.integer("dim", 0));
    for (std::size_t d = 0; d < dim; ++d)
      strips *= result.shape[d];
    length /= strips;
    stride = length * spec.integer("ranks", 1);
    start = length * spec.integer("place", 0);
  }

  void run(const Invocation &call) override {
    auto *to = static_cast<std::byte *>(call.outputs[0]);
    const auto *from =
        clears ? nullptr : static_cast<const std::byte *>(call.inputs[0]);
    const std::int64_t pieces = (length + kPiece - 1) / kPiece;
    context->forRange(
        strips * pieces, std::max<std::int64_t>(1, kPiece / length),
        [&](std::int64_t first, std::int64_t count, int) {
          for (std::int64_t i = first; i < first + count; ++i) {
            const std::int64_t strip = i / pieces, begin = i % pieces * kPiece;
            const auto bytes =
                static_cast<std::size_t>(std::min(kPiece, length - begin));
            std::byte *into = to + strip * length + begin;
            if (from)
              std::memcpy(into, from + strip * stride + start + begin, bytes);
            else
              std::memset(into, 0, bytes);
          }
        });
  }

private:
  static constexpr std::int64_t kPiece = 1 << 18; ///< bytes of a task

  const SharedContext context;
  std::int64_t strips = 1, start = 0;
  std::int64_t length, stride; ///< bytes
  bool clears = false;
};

} // namespace

MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "mask" && spec.inputs[0].type != spec.outputs[0].type)
    return nullptr;
  return std::make_unique<Move>(spec, context);
}

} // namespace mtplan::runtime::cpu
