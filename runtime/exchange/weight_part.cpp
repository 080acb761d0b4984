//===- weight_part.cpp - Parameters within tensors of files ---------------===//

#include "runtime/exchange/weight_part.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "runtime/backend/element.h"

namespace mtplan::runtime {

namespace {

// Describes a parameter as a strided matrix in a file's tensor. A parameter
// without two dimensions is contiguous and has one row.
struct Matrix {
  std::int64_t rows = 1, columns = 1;
  /// The parameter's first element has this index in the tensor.
  std::int64_t first = 0;
  std::int64_t rowStep = 0, columnStep = 1; ///< strides in the tensor
};

Matrix matrixOf(const WeightPart &part) {
  Matrix matrix;
  if (part.shape.size() != 2) {
    matrix.columns = part.elements();
    // `before` is 0 unless the tensor has only one dimension.
    matrix.first = part.before;
    return matrix;
  }
  matrix.rows = part.shape[0];
  matrix.columns = part.shape[1];
  const std::int64_t width = part.whole[1];
  matrix.first = part.along == 0 ? part.before * width : part.before;
  matrix.rowStep = part.transposed ? 1 : width;
  matrix.columnStep = part.transposed ? width : 1;
  return matrix;
}

// Calls visit(index in the parameter, index in the tensor, number of elements
// that are contiguous in both). A transposition proceeds in blocks. A block of
// the source and a block of the destination fit into the first-level cache
// together, so that each cache line is fetched once. Within a block, the
// transposition follows the rows of the destination, so that cache lines are
// written completely.
template <bool Take, typename Visit>
void walk(const Matrix &matrix, Visit visit) {
  if (matrix.columnStep == 1) {
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      visit(row * matrix.columns, matrix.first + row * matrix.rowStep,
            matrix.columns);
    return;
  }
  auto one = [&](std::int64_t row, std::int64_t column) {
    visit(row * matrix.columns + column,
          matrix.first + row * matrix.rowStep + column * matrix.columnStep, 1);
  };
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t r = 0; r < matrix.rows; r += kBlock)
    for (std::int64_t c = 0; c < matrix.columns; c += kBlock) {
      const std::int64_t lastRow = std::min(r + kBlock, matrix.rows);
      const std::int64_t lastColumn = std::min(c + kBlock, matrix.columns);
      if constexpr (Take)
        for (std::int64_t row = r; row < lastRow; ++row)
          for (std::int64_t column = c; column < lastColumn; ++column)
            one(row, column);
      else
        for (std::int64_t column = c; column < lastColumn; ++column)
          for (std::int64_t row = r; row < lastRow; ++row)
            one(row, column);
    }
}

// Copies the parameter out of the tensor if `Take`, else into the tensor. The
// element size is a template argument, so that copying an element is one
// instruction.
template <std::int64_t Bytes, bool Take>
void copy(const Matrix &matrix, const std::byte *from, std::byte *to) {
  walk<Take>(
      matrix, [&](std::int64_t own, std::int64_t file, std::int64_t count) {
        const std::byte *source = from + (Take ? file : own) * Bytes;
        std::byte *target = to + (Take ? own : file) * Bytes;
        if (count == 1)
          std::memcpy(target, source, Bytes);
        else
          std::memcpy(target, source, static_cast<std::size_t>(count * Bytes));
      });
}

template <bool Take>
void copyAll(const WeightPart &part, std::int64_t bytes, const std::byte *from,
             std::byte *to) {
  const Matrix matrix = matrixOf(part);
  if (bytes == 2)
    copy<2, Take>(matrix, from, to);
  else if (bytes == 4)
    copy<4, Take>(matrix, from, to);
  else
    copy<8, Take>(matrix, from, to);
}

// Converts 16-bit types to float, exactly, and returns other types unchanged.
template <typename From> auto wide(From value) {
  if constexpr (std::is_arithmetic_v<From>)
    return value;
  else
    return toFloat(value);
}

float narrow(float value) { return value; }
float narrow(double value) { return toFloatSticky(value); }

template <typename To, typename Wide> To rounded(Wide value) {
  if constexpr (std::is_arithmetic_v<To>)
    return static_cast<To>(value);
  else if constexpr (std::is_same_v<To, Bf16>)
    return toBf16(narrow(value));
  else
    return toF16(narrow(value));
}

// Each pair of types has its own branch-free loop.
template <typename From, typename To>
void convertAll(const std::byte *source, std::byte *target,
                std::int64_t elements) {
  const auto *from = reinterpret_cast<const From *>(source);
  auto *to = reinterpret_cast<To *>(target);
  for (std::int64_t i = 0; i < elements; ++i)
    to[i] = rounded<To>(wide(from[i]));
}

// Calls visit with a value of the type. Weights are never i32.
template <typename Visit> void withType(ElementType type, Visit visit) {
  switch (type) {
  case ElementType::f64:
    return visit(double{});
  case ElementType::f32:
    return visit(float{});
  case ElementType::f16:
    return visit(F16{});
  case ElementType::bf16:
    return visit(Bf16{});
  case ElementType::i32:
    return;
  }
}

} // namespace

std::int64_t WeightPart::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

void extractPart(const WeightPart &part, std::int64_t bytes,
                 const std::byte *file, std::byte *own) {
  copyAll<true>(part, bytes, file, own);
}

void insertPart(const WeightPart &part, std::int64_t bytes,
                const std::byte *own, std::byte *file) {
  copyAll<false>(part, bytes, own, file);
}

void convertElements(ElementType from, const std::byte *source, ElementType to,
                     std::byte *target, std::int64_t elements) {
  if (from == to) {
    std::memcpy(target, source,
                static_cast<std::size_t>(elements * bytesOf(from)));
    return;
  }
  withType(from, [&](auto a) {
    withType(to, [&](auto b) {
      convertAll<decltype(a), decltype(b)>(source, target, elements);
    });
  });
}

std::vector<std::int64_t> madeShape(const WeightSource &source,
                                    const WeightRule &rule) {
  std::vector<std::vector<std::int64_t>> shapes;
  shapes.reserve(rule.labels.size());
  for (const std::string &label : rule.labels)
    shapes.push_back(source.tensors().at(label).shape);
  return shapeInFile(rule, shapes);
}

std::vector<std::byte> madeTensor(const WeightSource &source,
                                  const WeightRule &rule, ElementType type) {
  WeightPart part;
  part.whole = madeShape(source, rule);
  part.transposed = rule.transposed;
  part.along = rule.along;
  std::int64_t size = bytesOf(type);
  for (const std::int64_t extent : part.whole)
    size *= extent;
  std::vector<std::byte> made(static_cast<std::size_t>(size));
  for (const std::string &label : rule.labels) {
    const SourceTensor &tensor = source.tensors().at(label);
    part.shape = tensor.shape;
    std::vector<std::byte> own = source.read(label);
    if (tensor.type != type) {
      std::vector<std::byte> rounded(
          static_cast<std::size_t>(tensor.elements() * bytesOf(type)));
      convertElements(tensor.type, own.data(), type, rounded.data(),
                      tensor.elements());
      own.swap(rounded);
    }
    insertPart(part, bytesOf(type), own.data(), made.data());
    if (rule.labels.size() > 1) {
      std::vector<std::int64_t> there = tensor.shape;
      if (rule.transposed)
        std::ranges::reverse(there);
      part.before += there[static_cast<std::size_t>(rule.along)];
    }
  }
  return made;
}

std::vector<std::string> parametersOf(const WeightSource &source) {
  std::vector<std::string> names;
  for (const auto &[name, tensor] : source.tensors())
    if (tensor.kind == StateKind::weight)
      names.push_back(name);
  return names;
}

std::map<std::string, WeightRule> rulesOf(const Origin &origin,
                                          const WeightSource &source) {
  const std::vector<std::string> theirs = origin.names();
  const WeightTable table =
      weightTable(recogniseWeights(theirs), parametersOf(source));
  expectWeights(table, theirs);
  return rulesByName(table, theirs);
}

std::vector<WeightRule> usualRules(const WeightSource &source,
                                   const std::string &family) {
  const std::vector<std::string> labels = parametersOf(source);
  const std::int64_t layers = layersOf(source);
  if (!family.empty())
    return weightTable(usualNames(family, layers), labels).rules;
  std::string faults;
  for (const std::string_view name : weightFamilies())
    try {
      return weightTable(usualNames(name, layers), labels).rules;
    } catch (const WeightError &error) {
      faults += "\n" + std::string(name) + ": " + error.what();
    }
  throw WeightError("the model is of no known family:" + faults);
}

std::int64_t layersOf(const WeightSource &source) {
  constexpr std::string_view kLayer = "h.";
  std::int64_t layers = 0;
  for (const auto &[name, tensor] : source.tensors()) {
    if (!name.starts_with(kLayer))
      continue;
    const char *first = name.data() + kLayer.size();
    std::int64_t number = -1;
    const auto [end, error] =
        std::from_chars(first, name.data() + name.size(), number);
    if (error == std::errc() && *end == '.')
      layers = std::max(layers, number + 1);
  }
  return layers;
}

} // namespace mtplan::runtime
