//===- position.cpp - Reference kernels of the first position -------------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

/// Calls `visit(sample, element)` for every sample of a piece [b, s, h], with
/// the first element of its first position, if the piece holds that position.
template <typename Visit>
void forEachFirst(const std::vector<std::int64_t> &shape, const Span &positions,
                  Visit &&visit) {
  for (std::int64_t b = 0; positions.offset == 0 && b < shape[0]; ++b)
    visit(b, b * shape[1] * shape[2]);
}

void putFirst(Call &call) {
  call.copy(0, 0);
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachFirst(shape, call.outPiece(0, 1), [&](std::int64_t, std::int64_t at) {
    for (std::int64_t h = 0; h < shape[2]; ++h)
      call.out[0][at + h] = call.in[1][h];
  });
}

void putFirstGrad(Call &call) {
  call.copy(0, 0);
  const std::vector<std::int64_t> &shape = call.outShape(0);
  Doubles term(call.out[1].size(), 0.0);
  forEachFirst(shape, call.outPiece(0, 1), [&](std::int64_t, std::int64_t at) {
    for (std::int64_t h = 0; h < shape[2]; ++h) {
      term[h] = call.in[0][at + h];
      call.out[0][at + h] = 0.0;
    }
    call.addSample(1, term);
  });
}

void takeFirst(Call &call) {
  const std::vector<std::int64_t> &shape = call.inShape(0);
  forEachFirst(shape, call.inPiece(0, 1),
               [&](std::int64_t sample, std::int64_t at) {
                 for (std::int64_t h = 0; h < shape[2]; ++h)
                   call.out[0][sample * shape[2] + h] = call.in[0][at + h];
               });
}

void takeFirstGrad(Call &call) {
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachFirst(shape, call.outPiece(0, 1),
               [&](std::int64_t sample, std::int64_t at) {
                 for (std::int64_t h = 0; h < shape[2]; ++h)
                   call.out[0][at + h] = call.in[0][sample * shape[2] + h];
               });
}

} // namespace

void addPosition(KernelTable &table) {
  table["put_first"] = putFirst;
  table["put_first_grad"] = putFirstGrad;
  table["take_first"] = takeFirst;
  table["take_first_grad"] = takeFirstGrad;
}

} // namespace mtplan::runtime::reference
