//===- resize.cpp - The same step at other sizes --------------------------===//

#include "passes/verify/resize.h"

#include <numeric>

#include "mlir/IR/Builders.h"

#include "ir/dim_classes.h"
#include "passes/layout/planner_op.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_SHRINKPASS
#include "passes/passes.h.inc"

namespace {

using Sizes = std::vector<std::int64_t>; // by class

// Classes made of others follow them.
void multiplyOut(const ir::DimClasses &dims, Sizes &sizes) {
  for (auto [index, dim] : llvm::enumerate(dims.all())) {
    if (dim.product.empty())
      continue;
    sizes[index] = 1;
    for (int part : dim.product)
      sizes[index] *= sizes[part];
  }
}

class Resizer {
public:
  Resizer(ModuleOp m, const ir::DimClasses &classes, const Sizes &newSizes)
      : module(m), dims(classes), sizes(newSizes), builder(m.getContext()) {}

  void run() {
    // Attributes first: they are read against the old shapes.
    module.walk([&](Operation *op) { rewriteAttributes(op); });
    llvm::SmallVector<std::pair<Value, Type>> types;
    auto note = [&](Value value) { types.emplace_back(value, newType(value)); };
    module.walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          note(argument);
      for (Value result : op->getResults())
        note(result);
    });
    for (auto [value, type] : types)
      value.setType(type);
  }

private:
  Type newType(Value value) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape;
    for (unsigned d = 0; d < type.getRank(); ++d)
      shape.push_back(sizes[dims.indexOf(value, d)]);
    return RankedTensorType::get(shape, type.getElementType());
  }

  void set(Operation *op, StringRef name, int64_t value) {
    op->setAttr(name, builder.getI64IntegerAttr(value));
  }

  // A count of ids that go with a table or logits of `rows` rows: all of them,
  // or, where there is padding, all but one.
  static int64_t idsBelow(int64_t count, int64_t rows, int64_t newRows) {
    if (rows == newRows)
      return count;
    return count < rows ? std::max<int64_t>(1, newRows - 1) : newRows;
  }

  void rewriteAttributes(Operation *op) {
    if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op)) {
      ir::FactorRule rule = compute.getFactorRule();
      auto newSizeOf = [&](StringRef factor) {
        return sizes[dims.indexOf(op, rule.find(factor))];
      };
      if (auto width = op->getAttrOfType<IntegerAttr>("head_dim")) {
        int64_t newWidth = newSizeOf("d");
        if (auto rotary = op->getAttrOfType<IntegerAttr>("rotary_dim"))
          set(op, "rotary_dim",
              rotary.getInt() == width.getInt()
                  ? newWidth
                  : std::max<int64_t>(2, newWidth * rotary.getInt() /
                                             width.getInt() / 2 * 2));
        set(op, "head_dim", newWidth);
      }
      if (auto classes = op->getAttrOfType<IntegerAttr>("classes"))
        set(op, "classes",
            idsBelow(classes.getInt(), rule.factors[rule.find("v")].size,
                     newSizeOf("v")));
    }
    if (auto input = llvm::dyn_cast<ir::InputOp>(op))
      if (std::optional<uint64_t> limit = input.getLimit())
        for (Operation *user : input->getUsers())
          if (auto reader = llvm::dyn_cast<ir::ComputeOp>(user)) {
            ir::FactorRule rule = reader.getFactorRule();
            int rows = rule.find("v");
            if (rows < 0)
              continue;
            input.setLimit(idsBelow(static_cast<int64_t>(*limit),
                                    rule.factors[rows].size,
                                    sizes[dims.indexOf(user, rows)]));
            break;
          }
  }

  ModuleOp module;
  const ir::DimClasses &dims;
  const Sizes &sizes;
  Builder builder;
};

Sizes sizesOf(const ir::DimClasses &dims) {
  Sizes sizes;
  for (const ir::DimClass &dim : dims.all())
    sizes.push_back(dim.size);
  return sizes;
}

// Least common multiple of all products of axes of `mesh` that divide `size`.
std::int64_t unitOf(std::int64_t size, const planner::Mesh &mesh) {
  std::int64_t unit = 1;
  std::size_t axes = mesh.axes.size();
  for (std::size_t subset = 0; subset < std::size_t{1} << axes; ++subset) {
    std::int64_t product = 1;
    for (std::size_t a = 0; a < axes; ++a)
      if (subset >> a & 1)
        product *= mesh.axes[a].size;
    if (size % product == 0)
      unit = std::lcm(unit, product);
  }
  return unit;
}

// Sizes differ from role to role, so that dimensions that were mixed up do not
// agree by accident; head widths stay even for rotations.
Sizes shrunkSizes(const ir::DimClasses &dims, const planner::Mesh &mesh) {
  Sizes sizes = sizesOf(dims);
  std::vector<bool> isPart(sizes.size(), false), isWidth(sizes.size(), false);
  for (const ir::DimClass &dim : dims.all())
    for (auto [i, part] : llvm::enumerate(dim.product)) {
      isPart[part] = true;
      isWidth[part] = i + 1 == dim.product.size();
    }
  for (auto [index, dim] : llvm::enumerate(dims.all())) {
    if (!dim.product.empty())
      continue;
    std::int64_t unit = dim.splittable ? unitOf(dim.size, mesh) : 1;
    std::int64_t least = isWidth[index]  ? 4
                         : isPart[index] ? std::min<std::int64_t>(dim.size, 2)
                         : dim.batch     ? 2
                         : dim.sequence  ? 4
                         : dim.whole     ? 6
                                         : 5;
    std::int64_t size = (least + unit - 1) / unit * unit;
    sizes[index] = std::min(size, dim.size);
  }
  multiplyOut(dims, sizes);
  // A split of a product needs the whole product to divide.
  for (auto [index, dim] : llvm::enumerate(dims.all())) {
    if (dim.product.empty() || !dim.splittable)
      continue;
    std::int64_t unit = unitOf(dim.size, mesh);
    std::int64_t &width = sizes[dim.product.back()];
    while (sizes[index] % unit != 0 &&
           width < dims.all()[dim.product.back()].size) {
      width += 4;
      multiplyOut(dims, sizes);
    }
  }
  return sizes;
}

// Two copies of a segment show how copies follow each other. Which two of the
// global numbering they are stays: `first` names them.
void shortenRepeats(ModuleOp module) {
  for (auto segment : module.getOps<ir::SegmentOp>())
    if (segment.getRepeat() > 2)
      segment.setRepeat(2);
  module.walk([&](Operation *op) {
    auto copies = op->getAttrOfType<DenseI64ArrayAttr>("copies");
    if (copies && copies[1] > 2)
      op->setAttr("copies",
                  DenseI64ArrayAttr::get(op->getContext(), {copies[0], 2}));
  });
}

struct ShrinkPass : impl::ShrinkPassBase<ShrinkPass> {
  void runOnOperation() override {
    if (getOperation()->hasAttr(ir::kPartitionedAttrName)) {
      getOperation().emitError("is partitioned and cannot be shrunk");
      return signalPassFailure();
    }
    shrink(getOperation());
  }
};

} // namespace

void resizeBatch(ModuleOp module, std::int64_t samples) {
  ir::DimClasses dims(module);
  Sizes sizes = sizesOf(dims);
  for (auto [index, dim] : llvm::enumerate(dims.all()))
    if (dim.batch)
      sizes[index] = samples;
  multiplyOut(dims, sizes);
  Resizer(module, dims, sizes).run();
}

void shrink(ModuleOp module) {
  ir::DimClasses dims(module);
  ir::MeshAttr mesh = meshAround(module);
  Sizes sizes = shrunkSizes(dims, mesh ? toPlanner(mesh) : planner::Mesh{});
  Resizer(module, dims, sizes).run();
  shortenRepeats(module);
}

} // namespace mtplan::passes
