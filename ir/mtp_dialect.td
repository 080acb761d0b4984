//===- mtp_dialect.td - The dialect, its base classes and attributes ------===//
//
// The dialect describes a training step. A good reading order is this file
// (meshes, layouts, strategies), structure_ops.td (segments, parameters), the
// operators by family, and collective_ops.td.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MTP_DIALECT
#define MTPLAN_IR_MTP_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Mtp_Dialect : Dialect {
  let name = "mtp";
  let cppNamespace = "::mtplan::ir";
  let summary = "Transformer training steps and their layouts over a mesh";
  let description = [{
    A module holds a chain of `mtp.segment`s in forward order and at most one
    `mtp.update`. Passes rewrite the module stage by stage:

    | stage | additions |
    | --- | --- |
    | model | forward operators only |
    | differentiated | `mtp.backward` in every segment, `mtp.update` |
    | planned | a strategy on every operator, `mtp.reshard` where layouts differ, the mesh |
    | partitioned | local shapes and explicit collectives: the program of one rank |

    MLIR's `mesh` dialect has suitable collectives but is not used, because its
    sharding propagation does not cover partial values and later versions of
    MLIR rename the dialect. Defining a few collectives here is the smaller
    risk.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Mtp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mtp_Dialect, mnemonic, traits>;

class Mtp_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Mtp_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Mtp_MeshAttr : Mtp_Attr<"Mesh", "mesh"> {
  let summary = "Named axes over ranks, the innermost last";
  let description = [{
    The module attribute `mtp.mesh` names the axes of the machine and their
    sizes. The last axis is innermost: its ranks are neighbours on the fastest
    link. In rank numbers, the last axis varies fastest.

    Example: 16 ranks, two data-parallel replicas of eight.

    ```mlir
    module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 8>} {}
    ```

    Constraints:
    - every size is at least 1;
    - there are fewer than 2^31 ranks;
    - no axis is named twice.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the number of ranks along `axis`, or 0 if the mesh lacks it.
    int64_t sizeOf(::llvm::StringRef axis) const;
    /// Returns the product of all sizes.
    int64_t ranks() const;
  }];
}

def Mtp_LayoutAttr : Mtp_Attr<"Layout", "layout"> {
  let summary = "The layout of a tensor over the axes of the mesh";
  let description = [{
    Each dimension has one entry, the list of the axes that split it, major axis
    first. An empty list means that no axis splits the dimension. `partial`
    names the axes over which each rank holds only a term of the value. The
    value is the sum (with `max`, the maximum) of the terms over these axes.

    Example:

    ```mlir
    // Rows are split over dp; every rank of tp holds a term of the sum.
    #mtp.layout<[["dp"], []], partial = ["tp"]>
    ```

    Constraints:
    - every entry is a list of axis names;
    - an axis appears at most once over all dimensions and `partial` together;
    - `max` appears only with a `partial` that is not empty.

    The operator that has the layout checks that the layout fits the tensor and
    the mesh.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::ArrayAttr">:$dims,
                        ArrayRefParameter<"::mlir::StringAttr">:$partial,
                        "bool":$max);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Mtp_StrategyAttr : Mtp_Attr<"Strategy", "strategy"> {
  let summary = "One operator's assignment of mesh axes to factors";
  let description = [{
    Names the factor that each axis splits. If an axis is not named, all ranks
    along this axis do the same work. `+N` instead of a factor means that the
    operands of linear group N (`FactorRule::linearGroups`) and the results stay
    partial over the axis.

    Example: samples over dp, output features over tp (the column split).

    ```mlir
    #mtp.strategy<"dp" = "b", "tp" = "o">
    ```

    Constraints:
    - no axis is named twice.

    `mtp-verify-layouts` checks that the operator has these factors.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes,
                        ArrayRefParameter<"::mlir::StringAttr">:$factors);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the factor that `axis` shards, "+N" for linear group N, or "".
    ::llvm::StringRef factorOf(::llvm::StringRef axis) const;
  }];
}

def Mtp_PlaceAttr : Mtp_Attr<"Place", "place"> {
  let summary = "The location of a tensor in a rank's memory";
  let description = [{
    A place is an array in an arena, with an entry per layer of a segment and a
    slot per micro-batch in flight. The tensor of the segment's c-th layer
    (counted from 0) and of micro-batch m starts at byte `offset + ((entry + c *
    step) % entries) * entry_stride + (m % slots) * slot_stride`. `type` is the
    type of the stored elements, which may be wider than the tensor's, as in
    gradient accumulators.

    Example: 12 layers save activations of two micro-batches in flight.

    ```mlir
    #mtp.place<arena = "activations", offset = 0, size = 8192, entries = 12,
               entry_stride = 8192, slots = 2, slot_stride = 98304, entry = 0,
               step = 1, type = bf16>
    ```

    Constraints:
    - `size`, `entries` and `slots` are at least 1, offset and strides at least
      0;
    - neither entries nor slots overlap in memory.
  }];
  let parameters = (ins StringRefParameter<"name of the arena">:$arena,
                        "int64_t":$offset, "int64_t":$size, "int64_t":$entries,
                        "int64_t":$entry_stride, "int64_t":$slots,
                        "int64_t":$slot_stride, "int64_t":$entry,
                        "int64_t":$step, "::mlir::Type":$type);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // MTPLAN_IR_MTP_DIALECT
