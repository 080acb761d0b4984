//===- position.cpp - The first position, and nothing, plainly ------------===//

#include "runtime/reference/reference.h"

namespace mtplan::runtime::reference {
namespace {

/// Calls `visit(sample, element)` with the first element of the first position
/// of every sample of a piece [b, s, h], if the piece has that position.
template <typename Visit>
void forEachFirst(const std::vector<std::int64_t> &shape, const Span &positions,
                  Visit &&visit) {
  for (std::int64_t b = 0; positions.offset == 0 && b < shape[0]; ++b)
    visit(b, b * shape[1] * shape[2]);
}

void putFirst(Call &call) {
  call.out[0] = call.in[0];
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachFirst(shape, call.outPiece(0, 1), [&](std::int64_t, std::int64_t at) {
    for (std::int64_t h = 0; h < shape[2]; ++h)
      call.out[0][at + h] = call.in[1][h];
  });
}

void putFirstGrad(Call &call) {
  call.out[0] = call.in[0];
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

void addPosition(Table &table) {
  table.functions["put_first"] = putFirst;
  table.functions["put_first_grad"] = putFirstGrad;
  table.functions["take_first"] = takeFirst;
  table.functions["take_first_grad"] = takeFirstGrad;
  table.functions["zeros"] = [](Call &) {}; // as results come
}

} // namespace mtplan::runtime::reference
