//===- product_lines.cpp - Products of matrices ---------------------------===//

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "codegen/source/kernel_writer.h"
#include "runtime/backend/einsum.h"
#include "runtime/backend/followed.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

/// Writes the sizes and strides of a matrix product (m, n, k, batches, a, b, c)
/// as products of the sizes of the einsum's letters. A number that is not such
/// a product is written as a literal.
class ShapeText {
public:
  /// \param lhs  the index of the operand that is matrix a
  ShapeText(const KernelWriter &to, std::size_t lhs)
      : names(to.names), tensors{&to.input(lhs), &to.input(1 - lhs),
                                 &to.output(0)} {
    const Equation equation(to.spec);
    letters[0] = lhs == 0 ? equation.lhs : equation.rhs;
    letters[1] = lhs == 0 ? equation.rhs : equation.lhs;
    letters[2] = equation.result;
  }

  MatrixText of(const MatrixShape &shape) const {
    MatrixText text;
    text.m = count(shape.m, {true, false, true});
    text.n = count(shape.n, {false, true, true});
    text.k = count(shape.k, {true, true, false});
    text.batches = count(shape.batches, {true, true, true});
    text.a = steps(shape.a, *tensors[0]);
    text.b = steps(shape.b, *tensors[1]);
    text.c = steps(shape.c, *tensors[2]);
    return text;
  }

private:
  /// Writes `number` as the product of the sizes of as many adjacent letters as
  /// possible. Only letters that occur in exactly those of a, b and c for which
  /// `places` is true are considered.
  std::string count(std::int64_t number,
                    const std::array<bool, 3> &places) const {
    std::vector<Extent> extents;
    const std::size_t first = places[0] ? 0 : 1;
    for (std::size_t d = 0; d < letters[first].size(); ++d) {
      const char letter = letters[first][d];
      bool isOne = true;
      for (std::size_t t = 0; t < 3; ++t)
        isOne = isOne &&
                (letters[t].find(letter) != std::string::npos) == places[t];
      if (isOne)
        extents.push_back(names.local(*tensors[first], d));
    }
    for (std::size_t leftOut = 0; leftOut <= extents.size(); ++leftOut)
      for (std::size_t from = 0; from <= leftOut; ++from) {
        // Each letter that is left out is a loop around the product.
        std::int64_t value = 1;
        std::vector<std::string> factors;
        for (std::size_t i = from; i < from + extents.size() - leftOut; ++i) {
          value *= extents[i].value;
          factors.push_back(extents[i].text);
        }
        if (value == number)
          return productText(factors);
      }
    return std::to_string(number);
  }

  std::string stride(std::int64_t number, const Tensor &tensor) const {
    std::int64_t value = 1;
    for (std::size_t first = tensor.shape.size(); number > 0; --first) {
      if (value == number)
        return names.elements(tensor, first);
      if (first == 0)
        break;
      value *= tensor.shape[first - 1];
    }
    return std::to_string(number);
  }

  std::string steps(const MatrixSteps &all, const Tensor &tensor) const {
    std::vector<std::string> members = {stride(all.row, tensor),
                                        stride(all.column, tensor)};
    if (all.batch != 0 || all.aligned != kAlignment)
      members.push_back(stride(all.batch, tensor));
    if (all.aligned != kAlignment)
      members.push_back(std::to_string(all.aligned));
    return listText(members);
  }

  const StageNames &names;
  const std::array<const Tensor *, 3> tensors; ///< a, b, c
  std::array<std::string, 3> letters;          ///< by matrix: a, b, c
};

/// Returns the sizes, the strides, and all other members that differ from their
/// default values.
std::vector<std::string> membersOf(const MatrixShape &shape,
                                   const MatrixText &text) {
  std::vector<std::string> members = {".m = " + text.m, ".n = " + text.n,
                                      ".k = " + text.k};
  if (shape.batches > 1)
    members.push_back(".batches = " + text.batches);
  members.push_back(".a = " + text.a);
  members.push_back(".b = " + text.b);
  members.push_back(".c = " + text.c);
  if (shape.inputs != ElementType::f32)
    members.push_back(".inputs = " + typeText(shape.inputs));
  if (shape.result != ElementType::f32)
    members.push_back(".result = " + typeText(shape.result));
  if (shape.biased)
    members.push_back(".biased = true");
  if (shape.adds)
    members.push_back(".adds = true");
  if (shape.epilogue != Epilogue::none)
    members.push_back(shape.epilogue == Epilogue::gelu
                          ? ".epilogue = Epilogue::gelu"
                          : ".epilogue = Epilogue::geluGrad");
  if (shape.sums != OperandSum::none)
    members.push_back(shape.sums == OperandSum::a ? ".sums = OperandSum::a"
                                                  : ".sums = OperandSum::b");
  if (shape.vectorStep != 0)
    members.push_back(".vectorStep = " + text.vectorStep);
  return members;
}

/// Selects the members of a shape that a call sets at run time.
enum class Varies { nothing, adds, biasOrAdds };

/// Adds the shapes that calls of this product may request from cuBLASLt.
void ask(const KernelWriter &to, MatrixShape shape, const MatrixText &text,
         Varies how) {
  const auto add = [&] {
    auto &all = to.wanted.products;
    if (std::ranges::find(all, shape, &WantedProduct::shape) == all.end())
      all.push_back({shape, text});
  };
  if (how == Varies::nothing)
    return add();
  shape.adds = false;
  add();
  shape.adds = true;
  shape.biased = shape.biased && how == Varies::adds;
  add();
}

void addTensor(std::vector<std::string> &tensors, const char *name,
               const std::string &tensor) {
  tensors.push_back(std::string(".") + name + " = " + tensor);
}

/// Returns `tensor`, advanced for each loop by the loop's step times its index.
std::string moved(const std::string &tensor, std::int64_t LetterStep::*side,
                  const MatrixCalls &calls) {
  std::string by;
  for (const auto &[loops, name] :
       {std::pair(&calls.outer, "i"), std::pair(&calls.summed, "term")})
    for (std::size_t l = 0; l < loops->size(); ++l)
      if (const std::int64_t step = (*loops)[l].*side; step != 0)
        by += (by.empty() ? "" : " + ") + std::string(name) +
              std::to_string(l) + " * " + std::to_string(step);
  return by.empty() ? tensor
                    : std::string("plus(")
                          .append(tensor)
                          .append(", ")
                          .append(by)
                          .append(")");
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
                      bias =
                          calls.biased ? converted("bias", 2, calls.made) : "";
    std::string c = to.out(0);
    if (out.type != calls.made) {
      to.text.line("const Tensor c{room + " + to.count(used) + ", " +
                   typeText(calls.made) + "};");
      c = "c";
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
    const MatrixText sizes = ShapeText(to, calls.lhs).of(calls.first);
    std::vector<std::string> members = membersOf(calls.first, sizes);
    ask(to, calls.first, sizes,
        calls.summed.empty() ? Varies::nothing : Varies::biasOrAdds);
    if (!calls.summed.empty())
      spoilFirst(members);
    std::vector<std::string> tensors;
    addTensor(tensors, "a", moved(a, &LetterStep::a, calls));
    addTensor(tensors, "b", moved(b, &LetterStep::b, calls));
    if (calls.biased)
      addTensor(tensors, "bias", bias);
    addTensor(tensors, "c", moved(c, &LetterStep::c, calls));
    to.text.callWithLists("multiply", "now", {members, tensors});
    for (std::size_t l = 0; l < calls.outer.size() + calls.summed.size(); ++l)
      to.text.leave();
    if (out.type != calls.made)
      to.text.call("converted", {"now", "c", to.out(0), to.elements(out)});
    if (needsBlock)
      to.text.close();
  }

private:
  /// Returns the bytes of the tensor in `type`, or 0 if the tensor already has
  /// this type.
  static std::int64_t roomAs(ElementType type, Tensor tensor) {
    return std::exchange(tensor.type, type) == type ? 0 : roomFor(tensor);
  }

  /// Makes the first term of a sum add the bias, and further terms accumulate.
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
      return to.in(operand);
    to.text.call("const Tensor " + std::string(name) + " = converted",
                 {"now", to.in(operand),
                  "{room + " + to.count(used) + ", " + typeText(type) + "}",
                  to.elements(from)});
    used += roomAs(type, from);
    return name;
  }

  const KernelWriter &to;
  const MatrixCalls calls;
  std::int64_t used = 0; ///< bytes of scratch memory in use
};

/// Writes one product, with the einsum's fused consumer as its epilogue.
void writeWhole(const KernelWriter &to, const FollowedProduct &whole,
                const MatrixText &sizes) {
  std::vector<std::string> tensors;
  addTensor(tensors, "a", to.in(whole.lhs));
  addTensor(tensors, "b", to.in(whole.rhs));
  if (whole.shape.biased)
    addTensor(tensors, "bias", to.in(2));
  addTensor(tensors, "c", to.out(whole.result));
  if (whole.takesAddend)
    addTensor(tensors, "before", to.in(whole.operands));
  else if (whole.shape.epilogue != Epilogue::none)
    addTensor(tensors, "kept",
              whole.takesKept ? to.in(whole.operands) : to.out(0));
  std::vector<std::string> members = membersOf(whole.shape, sizes);
  const std::string adds = to.adds();
  const bool accumulates = whole.shape.adds && !whole.takesAddend;
  ask(to, whole.shape, sizes,
      accumulates && adds != "true" ? Varies::adds : Varies::nothing);
  if (accumulates)
    for (std::string &member : members)
      if (member == ".adds = true")
        member = ".adds = " + adds;
  if (whole.shape.sums == OperandSum::none)
    return to.text.callWithLists("multiply", "now", {members, tensors});
  addTensor(tensors, "sums", to.out(whole.biasGradient));
  to.needs("sums.cuh");
  to.text.callWithLists(
      to.of("multiplyAndSum"), "now", {members, tensors},
      summedSizes(to, to.input(1), to.output(whole.biasGradient)));
}

void writeFollowed(const KernelWriter &to) {
  if (const auto whole = FollowedProduct::of(to.spec))
    writeWhole(to, *whole, ShapeText(to, whole->lhs).of(whole->shape));
  else
    writeInTurn(to);
}

/// Returns the stride from one matrix of a batch to the next, in elements. The
/// result is the difference of two buffer offsets if the stride equals this
/// difference, else a number literal.
std::string apartText(const StageNames &names, const Tensor &from,
                      const Tensor &to, std::int64_t elements) {
  if (elements == 0)
    return "0";
  if (from.entry != to.entry || from.entryStep != to.entryStep ||
      names.firstUse(indexed(from.buffer))->type != from.type ||
      names.apart(from, to) != elements * bytesOf(from.type))
    return std::to_string(elements);
  return "apart(buf::" + names.buffer(indexed(from.buffer)) +
         ", buf::" + names.buffer(indexed(to.buffer)) + ")";
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

KernelWriter writerOf(const Program &program, std::size_t i,
                      const StageNames &names, Text &text, Needs &needs) {
  return {program.instructions[i], program, names, text, needs};
}

KernelSpec specOf(const Instruction &instruction) {
  const auto &call = std::get<KernelCall>(instruction.what);
  KernelSpec spec{call.kernel, instruction.label, call.settings, {}, {}};
  for (const Tensor &tensor : instruction.inputs)
    spec.inputs.push_back({tensor.type, tensor.shape, {}});
  for (const Tensor &tensor : instruction.outputs)
    spec.outputs.push_back({tensor.type, tensor.shape, {}});
  return spec;
}

std::optional<FollowedProduct> wholeOf(const Program &program,
                                       const ProductBatch &batch) {
  return FollowedProduct::of(
      specOf(program.instructions[indexed(batch.instructions.front())]),
      batch.runs);
}

} // namespace

bool isOneCall(const Program &program, const ProductBatch &batch) {
  return wholeOf(program, batch).has_value();
}

void writeBatchedProduct(const Program &program, const ProductBatch &batch,
                         const StageNames &names, Text &text, Needs &needs) {
  const KernelWriter to = writerOf(program, indexed(batch.instructions.front()),
                                   names, text, needs);
  const Instruction &next =
      program.instructions[indexed(batch.instructions[1])];
  const FollowedProduct whole = *wholeOf(program, batch);
  const MatrixShape &shape = whole.shape;
  MatrixText sizes = ShapeText(to, whole.lhs).of(shape);
  const auto setStep = [&](std::string &steps, const MatrixSteps &all,
                           const Tensor &from, const Tensor &until) {
    const std::string ends =
        all.aligned == kAlignment ? "" : ", " + std::to_string(all.aligned);
    const std::size_t second = steps.find(", ");
    steps = steps.substr(0, steps.find_first_of(",}", second + 2)) + ", " +
            apartText(names, from, until, all.batch) + ends + "}";
  };
  setStep(sizes.a, shape.a, to.input(whole.lhs), next.inputs[whole.lhs]);
  setStep(sizes.b, shape.b, to.input(whole.rhs), next.inputs[whole.rhs]);
  setStep(sizes.c, shape.c, to.output(whole.result),
          next.outputs[whole.result]);
  const auto addTriples = [&](const std::string &steps, auto tensorOf) {
    const auto bufferOf = [&](std::size_t which) {
      const Instruction &one =
          program.instructions[indexed(batch.instructions[which])];
      return "buf::" + names.buffer(indexed(tensorOf(one).buffer));
    };
    if (steps.find("apart(") != std::string::npos)
      for (std::size_t i = 2; i < batch.instructions.size(); ++i)
        sizes.triples.push_back(
            {bufferOf(i - 2), bufferOf(i - 1), bufferOf(i)});
  };
  addTriples(sizes.a, [&](const Instruction &one) -> const Tensor & {
    return one.inputs[whole.lhs];
  });
  addTriples(sizes.b, [&](const Instruction &one) -> const Tensor & {
    return one.inputs[whole.rhs];
  });
  addTriples(sizes.c, [&](const Instruction &one) -> const Tensor & {
    return one.outputs[whole.result];
  });
  sizes.batches = std::to_string(shape.batches);
  if (shape.biased)
    sizes.vectorStep =
        apartText(names, to.input(2), next.inputs[2], shape.vectorStep);
  else if (shape.sums != OperandSum::none)
    sizes.vectorStep =
        apartText(names, to.output(whole.biasGradient),
                  next.outputs[whole.biasGradient], shape.vectorStep);
  writeWhole(to, whole, sizes);
}

void writeChoices(const Needs &needs, Text &text) {
  std::set<std::vector<std::string>> said;
  for (const auto &[shape, sizes] : needs.products) {
    for (const std::vector<std::string> &triple : sizes.triples)
      if (said.insert(triple).second)
        text.call("static_assert(areEven", triple, "));");
    text.callWithLists("choose", "rank", {membersOf(shape, sizes)});
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
