//===- linear_ops.td - Products, sums and lookups -------------------------===//

#ifndef MTPLAN_IR_LINEAR_OPS
#define MTPLAN_IR_LINEAR_OPS

include "compute_ops.td"

def Mtp_EinsumOp : Mtp_ComputeOpBase<"einsum"> {
  let summary = "Multiplies two tensors over named indices, adding a bias";
  let description = [{
    `equation` names the dimensions, one letter each, as in `"bsi,io->bso"`.
    Letters missing from the result are summed over. `bias`, if given, is added
    along the last dimension of the result. `row` and `column` are the letters
    of the weight's input and output features. Letter `v` always means the
    vocabulary, and `e` the experts.

    Example:

    ```mlir
    %y = mtp.einsum "h.*.mlp.fc1" "bsi,io->bso" (%x, %w, %b)
        : (tensor<8x64x32xbf16>, tensor<32x128xbf16>, tensor<128xbf16>) -> tensor<8x64x128xbf16>
    ```

    Constraints:
    - the equation has two operands and a result, each with as many letters as
      the tensor has dimensions;
    - every letter occurs in at least two of the three tensors and at most once
      in each;
    - dimensions with the same letter have the same size;
    - the bias has one dimension, with the size of the last dimension of the
      result.
  }];
  let arguments = (ins StrAttr:$label, StrAttr:$equation,
                       AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       Optional<AnyRankedTensor>:$bias,
                       DefaultValuedStrAttr<StrAttr, "i">:$row,
                       DefaultValuedStrAttr<StrAttr, "o">:$column);
  let head = "$label $equation";
  let inputs = "$lhs `,` $rhs (`,` $bias^)?";
}

def Mtp_SumOp : Mtp_NoGradientOpBase<"sum",
    "\"there is no operator that broadcasts it back\""> {
  let costClass = "biasGradient";
  let summary = "Sums a tensor over its leading dimensions";
  let description = [{
    Keeps as many trailing dimensions as the result has. The gradient of a bias
    is such a sum.

    Constraints:
    - the result's shape is a suffix of the operand's.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input);
}

def Mtp_EmbeddingOp : Mtp_ComputeOpBase<"embedding"> {
  let summary = "Looks up rows of a table by integer ids";
  let description = [{
    `result[b, s, :] = table[ids[b, s], :]`. A rank that holds only some of the
    rows returns zeros for the ids of all other rows, so splitting the rows
    makes the result partial.

    Constraints:
    - ids are integers; the table has two dimensions;
    - the result's shape is the shape of the ids followed by the table's width.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$ids,
                       AnyRankedTensor:$table);
  let inputs = "$ids `,` $table";
}

def Mtp_EmbeddingGradOp : Mtp_GradientOpBase<"embedding_grad"> {
  let summary = "Sums rows of a gradient that have the same integer id";
  let description = [{
    `result[v, :]` is the sum of `gradient[b, s, :]` over the positions whose id
    is v.

    Constraints:
    - ids are integers; the result has two dimensions;
    - the gradient's shape is the shape of the ids followed by the result's
      width.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$ids,
                       AnyRankedTensor:$gradient);
  let inputs = "$ids `,` $gradient";
}

def Mtp_PositionEmbeddingOp : Mtp_ComputeOpBase<"position_embedding"> {
  let summary = "Adds a learned vector per position";
  let description = [{
    `result[b, s, :] = input[b, s, :] + table[s, :]`. The table may have more
    rows than there are positions. In this case, positions cannot be split.

    Constraints:
    - the input has three dimensions, and the result has the input's type;
    - the table has two dimensions: at least as many rows as positions, and the
      width of the input.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$input,
                       AnyRankedTensor:$table);
  let inputs = "$input `,` $table";
}

def Mtp_PositionEmbeddingGradOp
    : Mtp_GradientOpBase<"position_embedding_grad"> {
  let summary = "Sums a gradient over the samples, per position";
  let description = [{
    `result[s, :]` is the sum of `gradient[b, s, :]` over b, and zero beyond the
    last position.

    Constraints:
    - the gradient has three dimensions;
    - the result has two dimensions: at least as many rows as positions, and the
      width of the gradient.
  }];
  let arguments = (ins StrAttr:$label, AnyRankedTensor:$gradient);
  let inputs = "$gradient";
}

#endif // MTPLAN_IR_LINEAR_OPS
