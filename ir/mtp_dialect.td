//===- mtp_dialect.td - The dialect and its base classes ------------------===//
//
// ir/ answers: what is a training step? Read in this order: mtp_attrs.td
// (meshes, layouts, strategies), structure_ops.td (segments, parameters),
// the operators by family, collective_ops.td.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MTP_DIALECT
#define MTPLAN_IR_MTP_DIALECT

include "mlir/IR/OpBase.td"

def Mtp_Dialect : Dialect {
  let name = "mtp";
  let cppNamespace = "::mtplan::ir";
  let summary = "Transformer training steps and how they lie over a mesh";
  let description = [{
    A module holds a chain of `mtp.segment`s in forward order and at most one
    `mtp.update`. It is rewritten stage by stage:

    | stage | what has been added |
    | --- | --- |
    | model | forward operators only |
    | differentiated | `mtp.backward` in every segment, `mtp.update` |
    | planned | a strategy on every operator, `mtp.reshard` where layouts differ, the mesh |
    | partitioned | local shapes and explicit collectives: the program of one rank |

    The upstream `mesh` dialect was considered: its collectives would serve, its
    sharding propagation does not cover partial values, and the dialect is
    renamed after MLIR 19. Owning a handful of collectives is the smaller risk.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// In mtp_attrs.cpp, where their storage is defined.
    void registerAttributes();
  }];
}

class Mtp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Mtp_Dialect, mnemonic, traits>;

class Mtp_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Mtp_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

#endif // MTPLAN_IR_MTP_DIALECT
