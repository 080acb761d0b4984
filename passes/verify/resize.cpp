//===- resize.cpp - Changes the sizes of a step ---------------------------===//

#include "passes/verify/resize.h"

#include <algorithm>
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

using Sizes = std::vector<std::int64_t>; // indexed by dimension class

// Sets the sizes of classes that are products of other classes.
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
    // Attributes are rewritten first, because the rewriting reads old shapes.
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

  // Returns the new number of ids of a table whose rows change from `rows` to
  // `newRows`. `count` is the old number of ids, and all other rows are
  // padding. A table with padding keeps one row of padding, and a table without
  // padding has an id for every row.
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
      // If top_k is below the number of experts, it stays below the new number
      // if possible.
      if (auto chosen = op->getAttrOfType<IntegerAttr>("top_k")) {
        int64_t experts = rule.factors[rule.find("e")].size;
        int64_t fewer = newSizeOf("e");
        set(op, "top_k",
            chosen.getInt() == experts
                ? fewer
                : std::clamp<int64_t>(chosen.getInt(), 1,
                                      std::max<int64_t>(1, fewer - 1)));
      }
      if (auto classes = op->getAttrOfType<IntegerAttr>("classes"))
        set(op, "classes",
            idsBelow(classes.getInt(), rule.factors[rule.find("v")].size,
                     newSizeOf("v")));
    }
    if (auto parameter = llvm::dyn_cast<ir::ParameterOp>(op))
      if (std::optional<ArrayRef<int64_t>> unpadded = parameter.getUnpadded()) {
        Value value = parameter.getValue();
        auto type = llvm::cast<RankedTensorType>(value.getType());
        SmallVector<int64_t> shape;
        for (auto [d, size] : llvm::enumerate(*unpadded))
          shape.push_back(
              idsBelow(size, type.getDimSize(static_cast<unsigned>(d)),
                       sizes[dims.indexOf(value, static_cast<int>(d))]));
        parameter.setUnpadded(shape);
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

// Returns the least common multiple of those products of axis sizes of `mesh`
// that divide `size`.
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

// Describes the condition of an operator on a dimension of several factors. The
// size of the major factor must be a multiple of `unit`, because only the major
// factor can be sharded.
struct MajorFactor {
  int dim = 0;
  std::vector<int> minors;
  std::int64_t unit = 1;

  bool divides(const Sizes &sizes) const {
    std::int64_t chunk = unit;
    for (int minor : minors)
      chunk *= sizes[minor];
    return sizes[dim] % chunk == 0;
  }
};

// Returns the conditions of all operators. One dimension may have different
// factors in different operators: (groups, queries, width) in attention, but
// (heads, width) in RoPE.
std::vector<MajorFactor> majorFactors(ModuleOp module,
                                      const ir::DimClasses &dims,
                                      const planner::Mesh &mesh) {
  std::vector<MajorFactor> majors;
  module.walk([&](ir::ComputeOp op) {
    ir::FactorRule rule = op.getFactorRule();
    auto add = [&](Value value, const ir::TensorFactors &tensor) {
      for (auto [d, factors] : llvm::enumerate(tensor)) {
        if (factors.size() < 2 || !rule.factors[factors.front()].divisible)
          continue;
        MajorFactor major{dims.indexOf(value, d), {}, 1};
        for (int minor : llvm::drop_begin(factors))
          major.minors.push_back(dims.indexOf(op, minor));
        major.unit = unitOf(rule.factors[factors.front()].size, mesh);
        majors.push_back(std::move(major));
      }
    };
    for (auto [value, tensor] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      add(value, tensor);
    for (auto [value, tensor] : llvm::zip_equal(op->getResults(), rule.results))
      add(value, tensor);
  });
  return majors;
}

class Shrinking {
public:
  Shrinking(ModuleOp module, const ir::DimClasses &dimClasses,
            const planner::Mesh &m)
      : dims(dimClasses), mesh(m), majors(majorFactors(module, dims, mesh)),
        sizes(sizesOf(dims)) {}

  Sizes run() {
    shrinkFactors();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (!all(i).product.empty())
        growProduct(i);
    return sizes;
  }

private:
  const ir::DimClass &all(std::size_t i) const { return dims.all()[i]; }

  // Shrinks all factors. As far as the units allow, sizes differ between roles,
  // so that a plan that confuses two dimensions is detected by their sizes.
  // Head widths stay even for RoPE, and the experts' capacity is so small that
  // tokens are dropped.
  void shrinkFactors() {
    std::vector<bool> isPart(sizes.size(), false), isMajor(sizes.size(), false);
    for (const ir::DimClass &dim : dims.all())
      for (auto [i, part] : llvm::enumerate(dim.product)) {
        isPart[part] = true;
        isMajor[part] = isMajor[part] || i + 1 < dim.product.size();
      }
    for (auto [index, dim] : llvm::enumerate(dims.all())) {
      std::int64_t unit = dim.splittable ? unitOf(dim.size, mesh) : 1;
      std::int64_t least = isMajor[index]  ? 2
                           : isPart[index] ? 4
                           : dim.batch     ? 2
                           : dim.places    ? 2
                           : dim.sequence  ? 4
                           : dim.whole     ? 6
                                           : 5;
      sizes[index] = std::min((least + unit - 1) / unit * unit, dim.size);
    }
    multiplyOut(dims, sizes);
  }

  bool fits(std::size_t index) const {
    if (all(index).splittable &&
        sizes[index] % unitOf(all(index).size, mesh) != 0)
      return false;
    return llvm::all_of(majors, [&](const MajorFactor &major) {
      return major.dim != static_cast<int>(index) || major.divides(sizes);
    });
  }

  // Grows the factors of product `index` until fits() holds, at most to their
  // original sizes. Minor factors, which no axis shards, grow before the major
  // factor. Only the last factor, the width of a head, grows after the major
  // factor. The width is a minor factor for every operator, and a wider head
  // does not make the number of heads divisible.
  void growProduct(std::size_t index) {
    ArrayRef<int> product = all(index).product;
    std::vector<int> order(product.rbegin() + 1, product.rend());
    order.push_back(product.back());
    for (int part : order) {
      std::int64_t step = all(part).splittable ? unitOf(all(part).size, mesh)
                          : all(part).size % 2 ? 1
                                               : 2;
      while (!fits(index) && sizes[part] < all(part).size) {
        sizes[part] = std::min(sizes[part] + step, all(part).size);
        multiplyOut(dims, sizes);
      }
    }
  }

  const ir::DimClasses &dims;
  const planner::Mesh &mesh;
  std::vector<MajorFactor> majors;
  Sizes sizes;
};

// Limits segments to two layers, because two layers suffice to test the
// transition from one layer to the next. `first` still numbers the layers as in
// the model.
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
  ir::MeshAttr mesh = ir::meshOf(module);
  planner::Mesh plain = mesh ? toPlanner(mesh) : planner::Mesh{};
  Sizes sizes = Shrinking(module, dims, plain).run();
  Resizer(module, dims, sizes).run();
  shortenRepeats(module);
}

} // namespace mtplan::passes
