//===- product_lines.cpp - Products of matrices ---------------------------===//

#include <algorithm>
#include <utility>

#include "codegen/source/kernel_writer.h"
#include "runtime/backend/followed.h"
#include "runtime/backend/followed_product.h"
#include "runtime/backend/letter_loops.h"
#include "runtime/backend/matrix_calls.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

std::string stepsText(const MatrixSteps &steps) {
  std::vector<std::int64_t> members = {steps.row, steps.column, steps.batch};
  if (steps.aligned != kAlignment)
    members.push_back(steps.aligned);
  return listText(members);
}

/// What is not as MatrixShape has it already.
std::vector<std::string> membersOf(const MatrixShape &shape) {
  std::vector<std::string> members = {".m = " + std::to_string(shape.m),
                                      ".n = " + std::to_string(shape.n),
                                      ".k = " + std::to_string(shape.k)};
  if (shape.batches > 1)
    members.push_back(".batches = " + std::to_string(shape.batches));
  members.push_back(".a = " + stepsText(shape.a));
  members.push_back(".b = " + stepsText(shape.b));
  members.push_back(".c = " + stepsText(shape.c));
  members.push_back(".inputs = " + typeText(shape.inputs));
  members.push_back(".result = " + typeText(shape.result));
  if (shape.biased)
    members.push_back(".biased = true");
  if (shape.adds)
    members.push_back(".adds = true");
  if (shape.epilogue != Epilogue::none)
    members.push_back(shape.epilogue == Epilogue::gelu
                          ? ".epilogue = Epilogue::gelu"
                          : ".epilogue = Epilogue::geluGrad");
  return members;
}

std::string sumsText(const MatrixShape &shape) {
  return shape.sums == OperandSum::a ? ".sums = OperandSum::a"
                                     : ".sums = OperandSum::b";
}

/// Whether a call may have either of both.
enum class Varies { nothing, adds, biasOrAdds };

/// Adds what calls of the shape ask cuBLASLt for.
void ask(const KernelWriter &to, MatrixShape shape, Varies how) {
  const auto add = [&] {
    auto &all = to.wanted.products;
    if (std::ranges::find(all, shape) == all.end())
      all.push_back(shape);
  };
  if (how == Varies::nothing)
    return add();
  shape.adds = false;
  add();
  shape.adds = true;
  shape.biased = shape.biased && how == Varies::adds;
  add();
}

/// function(first, {members...}, operands...);
void writeCall(const std::string &function, const char *first,
               std::vector<std::string> members,
               const std::vector<std::string> &operands, Text &text) {
  members.front() = "{" + members.front();
  members.back() += "}";
  members.insert(members.begin(), first);
  members.insert(members.end(), operands.begin(), operands.end());
  text.call(function, members);
}

void writeMultiply(const KernelWriter &to, const std::string &function,
                   std::vector<std::string> members,
                   const std::vector<std::string> &operands) {
  writeCall(function, "now", std::move(members), operands, to.text);
}

/// `data`, so many elements on in every step of the loops.
std::string moved(const std::string &data, std::int64_t LetterStep::*side,
                  const MatrixCalls &calls, ElementType type) {
  std::string by;
  for (const auto &[loops, name] :
       {std::pair(&calls.outer, "i"), std::pair(&calls.summed, "term")})
    for (std::size_t l = 0; l < loops->size(); ++l)
      if (const std::int64_t step = (*loops)[l].*side; step != 0)
        by += (by.empty() ? "" : " + ") + std::string(name) +
              std::to_string(l) + " * " + std::to_string(step);
  return by.empty() ? data
                    : "plus(" + data + ", " + by + ", " + typeText(type) + ")";
}

class ProductWriter {
public:
  explicit ProductWriter(const KernelWriter &writer)
      : to(writer), calls(MatrixCalls::of(to.spec)) {}

  void write() {
    const Tensor &lhs = to.instruction.inputs[calls.lhs],
                 &rhs = to.instruction.inputs[calls.rhs],
                 &out = to.instruction.outputs[0];
    const bool needsBlock =
        lhs.type != calls.in || rhs.type != calls.in ||
        out.type != calls.made ||
        (calls.biased && to.instruction.inputs[2].type != calls.made) ||
        !calls.outer.empty() || !calls.summed.empty();
    if (needsBlock)
      to.text.open("{");
    std::int64_t room =
        roomAs(calls.in, lhs) + roomAs(calls.in, rhs) + roomAs(calls.made, out);
    if (calls.biased)
      room += roomAs(calls.made, to.instruction.inputs[2]);
    if (room > 0)
      to.text.line("auto *room = static_cast<std::byte *>(" +
                   to.scratch(to.count(room)) + ");");
    const std::string a = converted("a", calls.lhs, calls.in),
                      b = converted("b", calls.rhs, calls.in),
                      bias = calls.biased ? converted("bias", 2, calls.made)
                                          : "nullptr";
    std::string c = to.out(0) + ".data";
    if (out.type != calls.made) {
      to.text.line("const Tensor c{room + " + to.count(used) + ", " +
                   typeText(calls.made) + "};");
      c = "c.data";
    }
    for (const auto &[loops, name] :
         {std::pair(&calls.outer, "i"), std::pair(&calls.summed, "term")})
      for (std::size_t l = 0; l < loops->size(); ++l) {
        const std::string index = name + std::to_string(l);
        to.text.open(std::string("for (std::int64_t ")
                         .append(index)
                         .append(" = 0; ")
                         .append(index)
                         .append(" < ")
                         .append(to.count((*loops)[l].size))
                         .append("; ++")
                         .append(index)
                         .append(")"));
      }
    std::vector<std::string> members = membersOf(calls.first);
    ask(to, calls.first,
        calls.summed.empty() ? Varies::nothing : Varies::biasOrAdds);
    if (!calls.summed.empty())
      spoilFirst(members);
    writeMultiply(to, "multiply", std::move(members),
                  {moved(a, &LetterStep::a, calls, calls.in),
                   moved(b, &LetterStep::b, calls, calls.in), bias,
                   moved(c, &LetterStep::c, calls, calls.made)});
    for (std::size_t l = 0; l < calls.outer.size() + calls.summed.size(); ++l)
      to.text.leave();
    if (out.type != calls.made)
      to.text.call("converted",
                   {"now", "c", to.out(0), to.count(elementsOf(out))});
    if (needsBlock)
      to.text.close();
  }

private:
  /// For a copy of a type that a tensor does not have; else none.
  static std::int64_t roomAs(ElementType type, Tensor tensor) {
    return std::exchange(tensor.type, type) == type ? 0 : roomFor(tensor);
  }

  /// The first of a sum's terms has the bias, the others add.
  void spoilFirst(std::vector<std::string> &members) const {
    std::string first;
    for (std::size_t l = 0; l < calls.summed.size(); ++l)
      first += (l > 0 ? " + term" : "term") + std::to_string(l);
    if (calls.biased)
      members.back() = ".biased = " + first + " == 0";
    members.push_back(".adds = " + first + " > 0");
  }

  std::string converted(const char *name, std::size_t operand,
                        ElementType type) {
    const Tensor &from = to.instruction.inputs[operand];
    if (from.type == type)
      return to.in(operand) + ".data";
    to.text.call("const Tensor " + std::string(name) + " = converted",
                 {"now", to.in(operand),
                  "{room + " + to.count(used) + ", " + typeText(type) + "}",
                  to.count(elementsOf(from))});
    used += roomAs(type, from);
    return std::string(name) + ".data";
  }

  const KernelWriter &to;
  const MatrixCalls calls;
  std::int64_t used = 0; ///< bytes of the scratch memory
};

/// What follows an einsum, in the same product or in a kernel of its own.
void writeFollowed(const KernelWriter &to) {
  if (const auto whole = FollowedProduct::of(to.spec)) {
    const auto data = [](const std::string &tensor) {
      return tensor + ".data";
    };
    std::vector<std::string> operands = {
        data(to.in(whole->lhs)), data(to.in(whole->rhs)),
        whole->operands == 3 ? data(to.in(2)) : "nullptr",
        data(to.out(whole->result))};
    if (whole->takesAddend)
      operands.push_back(data(to.in(whole->operands)));
    else if (whole->shape.epilogue != Epilogue::none)
      operands.insert(operands.end(),
                      {"nullptr", data(whole->takesKept ? to.in(whole->operands)
                                                        : to.out(0))});
    std::vector<std::string> members = membersOf(whole->shape);
    const std::string adds = to.adds();
    const bool accumulates = whole->shape.adds && !whole->takesAddend;
    ask(to, whole->shape,
        accumulates && adds != "true" ? Varies::adds : Varies::nothing);
    if (accumulates)
      members.back() = ".adds = " + adds;
    if (whole->shape.sums == OperandSum::none)
      return writeMultiply(to, "multiply", members, operands);
    members.push_back(sumsText(whole->shape));
    operands.erase(operands.begin() + 2); // there is no bias
    for (const std::string &one :
         {to.in(1), to.out(whole->biasGradient),
          summedSizes(to.instruction.inputs[1],
                      to.instruction.outputs[whole->biasGradient])})
      operands.push_back(one);
    to.needs("sums.cuh");
    return writeMultiply(to, to.of("multiplyAndSum"), members, operands);
  }
  writeInTurn(to);
}

std::string lettersText(const LetterLoops &loops) {
  return "Letters" +
         listText(std::vector<std::string>{
             std::to_string(loops.sizes.size()), listText(loops.sizes),
             listText(loops.left), listText(loops.right)});
}

void writeLetterSum(const KernelWriter &to) {
  const LetterSums loops(to.spec);
  if (loops.kept.sizes.size() > 8 || loops.summed.sizes.size() > 8)
    to.refuse("has more than 8 letters");
  to.needs("letters.cuh");
  to.call("letterSum", {to.in(0), to.in(1), to.in(2), to.out(0),
                        lettersText(loops.kept), lettersText(loops.summed)});
}

} // namespace

void writeChoices(const Needs &needs, Text &text) {
  for (const MatrixShape &shape : needs.products) {
    std::vector<std::string> members = membersOf(shape);
    if (shape.sums != OperandSum::none)
      members.push_back(sumsText(shape));
    writeCall("choose", "rank", std::move(members), {}, text);
  }
}

void addProducts(KernelTable &table) {
  table["einsum"] = [](const KernelWriter &to) {
    if (isOfTwo(to.spec))
      writeFollowed(to);
    else if (ProductShape::of(to.spec))
      ProductWriter(to).write();
    else
      writeLetterSum(to);
  };
}

} // namespace mtplan::codegen
