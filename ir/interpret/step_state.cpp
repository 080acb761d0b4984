//===- step_state.cpp - Parameters, sums and data of a step ---------------===//

#include "ir/interpret/step_state.h"

#include <algorithm>
#include <cmath>

#include "runtime/random/draws.h"

using namespace mlir;

namespace mtplan::ir {

using runtime::initialValue, runtime::kCountLabel, runtime::kTargetsLabel,
    runtime::Stream, runtime::targetValue;

namespace {

std::vector<std::int64_t> shapeOf(Type type) {
  return llvm::cast<RankedTensorType>(type).getShape().vec();
}

std::int64_t elementsOf(const std::vector<Span> &spans) {
  std::int64_t elements = 1;
  for (const Span &span : spans)
    elements *= span.global;
  return elements;
}

/// Returns the function that maps an element of one micro-batch's input to its
/// value. Random samples are numbered consecutively over micro-batches and
/// steps, so that the micro-batch size does not change them. The function does
/// not apply to the input "count".
/// \param elements  number of elements of the micro-batch's global input
std::function<double(std::int64_t)> valuesOf(InputOp op,
                                             const RunOptions &options,
                                             std::int64_t microBatch,
                                             std::int64_t elements) {
  const std::string label = op.getLabel().str();
  if (options.given)
    return [label, microBatch, &given = *options.given](std::int64_t element) {
      return given.input(label, microBatch, element);
    };
  const Stream stream = Stream::ofData({options.seed, 0, 0, 0}, label);
  const std::int64_t first =
      (std::int64_t{options.step - 1} * options.microBatches + microBatch) *
      elements;
  if (!op.getLimit())
    return [stream, first](std::int64_t element) {
      return stream.normalAt(first + element);
    };
  const auto limit = static_cast<std::int64_t>(*op.getLimit());
  if (label == kTargetsLabel)
    return [stream, first, limit](std::int64_t element) {
      return targetValue(stream, first + element, limit);
    };
  return [stream, first, limit](std::int64_t element) {
    return static_cast<double>(stream.integerAt(first + element, limit));
  };
}

/// Returns the key of a label. `copy` is ignored unless the label has a `*`.
TensorKey keyOf(StringRef label, std::int64_t copy) {
  return {label.str(), label.contains('*') ? copy : 0};
}

} // namespace

FailureOr<LayoutAttr> StepState::layoutOf(Operation *op, LayoutAttr layout,
                                          std::size_t tensorRank) const {
  if (!distributed)
    return LayoutAttr();
  if (!mesh.fits(layout, tensorRank))
    return op->emitOpError("has a layout that does not fit its tensor or mesh");
  return layout;
}

LogicalResult StepState::prepare(ModuleOp module) {
  InputOp targets;
  module.walk([&](InputOp op) {
    if (op.getLabel() != kTargetsLabel)
      return WalkResult::advance();
    targets = op;
    return WalkResult::interrupt();
  });
  if (!targets)
    return success();
  if (!targets.getLimit())
    return targets.emitOpError("has no limit to draw targets below");
  if (failed(layoutOf(targets, targets.getLayoutAttr(),
                      targets.getType().getRank())))
    return failure();
  targetCount = countTargets(targets);
  return success();
}

double StepState::countTargets(InputOp targets) const {
  const LayoutAttr layout =
      distributed ? targets.getLayoutAttr() : LayoutAttr();
  const std::int64_t elements =
      elementsOf(mesh.piecesOf(layout, 0, shapeOf(targets.getType())));
  double count = 0.0;
  for (int batch = 0; batch < options.microBatches; ++batch) {
    const auto valueAt = valuesOf(targets, options, batch, elements);
    for (std::int64_t i = 0; i < elements; ++i)
      if (valueAt(i) >= 0)
        ++count;
  }
  // A step without targets has a loss of 0 rather than 0 / 0.
  return std::max(count, 1.0);
}

FailureOr<RankValues> StepState::readInput(InputOp op,
                                           std::int64_t microBatch) {
  const auto layout = layoutOf(op, op.getLayoutAttr(), op.getType().getRank());
  if (failed(layout))
    return failure();
  const bool count = op.getLabel() == kCountLabel;
  if (count && targetCount == 0.0)
    return op.emitOpError("counts the targets of a module without '")
           << kTargetsLabel << "'";
  if (!count && !op.getLimit() &&
      !llvm::isa<FloatType>(op.getType().getElementType()))
    return op.emitOpError("has no limit to draw integers below");

  const auto valueAt =
      valuesOf(op, options, microBatch,
               elementsOf(mesh.piecesOf(*layout, 0, shapeOf(op.getType()))));
  std::vector<HostTensor> ranks;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    HostTensor &piece = ranks.emplace_back(shapeOf(op.getType()));
    const auto spans = mesh.piecesOf(*layout, rank, piece.shape);
    forEachIndex(piece.shape, [&](std::size_t i, const auto &index) {
      piece.data[i] = count ? targetCount : valueAt(globalIndex(spans, index));
    });
  }
  return share(std::move(ranks));
}

HostTensor StepState::initialPiece(const TensorKey &key,
                                   llvm::ArrayRef<std::int64_t> shape,
                                   LayoutAttr layout, std::int64_t rank) {
  HostTensor piece(shape.vec());
  const std::string &init = inits.at(key.label);
  const Stream stream = Stream::ofParameter(options.seed, key.label, key.copy);
  const auto &nudge = options.perturbation;
  const bool nudged = nudge && keyOf(nudge->label, nudge->copy) == key;
  const auto spans = mesh.piecesOf(layout, rank, piece.shape);
  forEachIndex(piece.shape, [&](std::size_t i, const auto &index) {
    const std::int64_t element = globalIndex(spans, index);
    piece.data[i] = options.given ? options.given->parameter(key, element)
                                  : initialValue(stream, init, element);
    if (nudged && nudge->element == element) {
      piece.data[i] += nudge->delta;
      perturbed = true;
    }
  });
  return piece;
}

FailureOr<RankValues> StepState::readParameter(ParameterOp op,
                                               std::int64_t copy) {
  const auto layout = layoutOf(op, op.getLayoutAttr(), op.getType().getRank());
  if (failed(layout))
    return failure();
  const TensorKey key = keyOf(op.getLabel(), copy);
  auto [entry, isNew] = parameters.try_emplace(key);
  DistributedTensor &parameter = entry->second;
  if (isNew) {
    parameter.layout = *layout;
    inits.try_emplace(key.label, op.getInit().str());
    const auto shape = shapeOf(op.getType());
    for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank)
      parameter.ranks.push_back(initialPiece(key, shape, *layout, rank));
  } else if (parameter.layout != *layout ||
             parameter.ranks.front().shape != shapeOf(op.getType())) {
    return op.emitOpError("stores '")
           << key.name() << "' otherwise than another use of it";
  }
  return share(parameter.ranks);
}

/// Applies the first AdamW update. The moments start at zero, so that bias
/// correction turns them into the gradient and its square.
static void updatePiece(HostTensor &parameter, const HostTensor &gradient,
                        const AdamOptions &adam, bool decay) {
  for (std::size_t i = 0; i < parameter.data.size(); ++i) {
    const double slope = gradient.data[i];
    const double mean = (1.0 - adam.beta1) * slope / (1.0 - adam.beta1);
    const double square =
        (1.0 - adam.beta2) * slope * slope / (1.0 - adam.beta2);
    double &weight = parameter.data[i];
    if (decay)
      weight -= adam.learningRate * adam.decay * weight;
    weight -= adam.learningRate * mean / (std::sqrt(square) + adam.epsilon);
  }
}

FailureOr<DistributedTensor *> StepState::parameterOf(Operation *op,
                                                      const TensorKey &key) {
  auto found = parameters.find(key);
  if (found == parameters.end())
    return op->emitOpError("updates '")
           << key.name() << "', which no segment reads";
  return &found->second;
}

LogicalResult StepState::noteGradient(AdamwOp op, const TensorKey &key,
                                      LayoutAttr layout,
                                      const RankValues &gradient) {
  if (gradients.emplace(key, DistributedTensor{layout, *gradient}).second)
    return success();
  return op.emitOpError("updates '") << key.name() << "' once more";
}

LogicalResult StepState::update(AdamwOp op, std::int64_t copy,
                                const RankValues &gradient) {
  const TensorKey key = keyOf(op.getLabel(), copy);
  const auto parameter = parameterOf(op, key);
  if (failed(parameter))
    return failure();
  std::vector<HostTensor> &pieces = (*parameter)->ranks;
  if (pieces.front().shape != gradient->front().shape)
    return op.emitOpError("updates '")
           << key.name() << "' with a gradient of another shape";
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank)
    updatePiece(pieces[rank], (*gradient)[rank], options.adam, op.getDecay());
  return noteGradient(op, key, (*parameter)->layout, gradient);
}

FailureOr<RankValues> StepState::updateOwned(AdamwOp op, std::int64_t copy,
                                             const RankValues &gradient) {
  const TensorKey key = keyOf(op.getLabel(), copy);
  const auto &shape = gradient->front().shape;
  const auto layout = layoutOf(op, op.getLayoutAttr(), shape.size());
  if (failed(layout) || failed(parameterOf(op, key)))
    return failure();
  // The master weights of the rank's shard are the initial values, because a
  // run is a single step.
  std::vector<HostTensor> pieces;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    pieces.push_back(initialPiece(key, shape, *layout, rank));
    updatePiece(pieces.back(), (*gradient)[rank], options.adam, op.getDecay());
  }
  if (failed(noteGradient(op, key, *layout, gradient)))
    return failure();
  return share(std::move(pieces));
}

LogicalResult StepState::store(StoreOp op, std::int64_t copy,
                               const RankValues &value) {
  const TensorKey key = keyOf(op.getLabel(), copy);
  const auto parameter = parameterOf(op, key);
  if (failed(parameter))
    return failure();
  if ((*parameter)->ranks.front().shape != value->front().shape)
    return op.emitOpError("replaces '")
           << key.name() << "' by a value of another shape";
  (*parameter)->ranks = *value;
  return success();
}

LogicalResult StepState::accumulate(AccumulateOp op, std::int64_t copy,
                                    const RankValues &term) {
  const TensorKey key = keyOf(op.getLabel(), copy);
  const auto layout =
      layoutOf(op, op.getLayoutAttr(), term->front().shape.size());
  if (failed(layout))
    return failure();
  auto [entry, isNew] =
      accumulators.try_emplace(key, DistributedTensor{*layout, *term});
  if (isNew)
    return success();
  DistributedTensor &total = entry->second;
  if (total.layout != *layout ||
      total.ranks.front().shape != term->front().shape)
    return op.emitOpError("adds to '")
           << key.name() << "' otherwise than another term of it";
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank)
    reduceInto(total.ranks[rank], (*term)[rank], /*max=*/false);
  return success();
}

FailureOr<RankValues> StepState::readAccumulated(AccumulatedOp op,
                                                 std::int64_t copy) {
  auto found = accumulators.find(keyOf(op.getLabel(), copy));
  if (found == accumulators.end())
    return op.emitOpError("reads an accumulator to which no operation adds");
  if (found->second.ranks.front().shape != shapeOf(op.getType()))
    return op.emitOpError("reads an accumulator of another shape");
  return share(found->second.ranks);
}

void StepState::report(ResultOp op, std::int64_t copy,
                       const RankValues &value) {
  results.insert_or_assign(keyOf(op.getLabel(), copy),
                           DistributedTensor{LayoutAttr(), *value});
}

std::vector<std::int64_t>
StepState::accumulatedCopies(llvm::StringRef label) const {
  std::vector<std::int64_t> copies;
  for (const auto &[key, total] : accumulators)
    if (key.label == label)
      copies.push_back(key.copy);
  return copies;
}

void StepState::handOver(RunResult &result, bool updated) {
  if (!updated)
    for (auto &[key, total] : accumulators)
      (parameters.count(key) ? gradients : results).emplace(key, total);
  result.parameters = std::move(parameters);
  result.gradients = std::move(gradients);
  result.results = std::move(results);
}

} // namespace mtplan::ir
