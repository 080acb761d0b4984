//===- made_tensor.cpp - Makes a tensor of a file from parameters ---------===//

#include "runtime/exchange/made_tensor.h"

#include <algorithm>

#include "runtime/exchange/weight_part.h"

namespace mtplan::runtime {

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
    putPart(part, bytesOf(type), own.data(), made.data());
    if (rule.labels.size() > 1) {
      std::vector<std::int64_t> there = tensor.shape;
      if (rule.transposed)
        std::ranges::reverse(there);
      part.before += there[static_cast<std::size_t>(rule.along)];
    }
  }
  return made;
}

} // namespace mtplan::runtime
