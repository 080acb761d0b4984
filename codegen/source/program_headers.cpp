//===- program_headers.cpp - Headers beside an emitted program ------------===//

#include "codegen/source/program_headers.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace mtplan::codegen {
namespace {

/// Lists the runtime files that one header of the program may contain.
struct HeaderRow {
  const char *path;
  const char *summary;
  std::vector<std::string> files; ///< unneeded files are omitted
};

/// Returns all possible headers. A header may include only earlier headers.
const std::vector<HeaderRow> &headerRows() {
  static const std::string device = "runtime/cuda/device/",
                           standalone = "runtime/cuda/standalone/",
                           backend = "runtime/backend/",
                           training = "runtime/training/",
                           random = "runtime/random/";
  static const std::vector<HeaderRow> kRows = {
      {"kernels/tensor.cuh",
       "tensors, launches, copies, sums within a block",
       {"runtime/plan/element_type.h", backend + "tensor_view.h",
        backend + "element.h", backend + "step_numbers.h",
        "runtime/cuda/device_error.h", device + "tensor.h",
        device + "launch.cuh", device + "elements.cuh",
        device + "block_sum.cuh", device + "tensor_core.cuh",
        device + "addend.cuh"}},
      {"kernels/random.cuh",
       "counter-based random numbers, dropout",
       {random + "philox.h", random + "draws.h", random + "draws.cpp",
        device + "dropout.cuh"}},
      {"kernels/elementwise.cuh",
       "activations, element-wise arithmetic, softmax",
       {backend + "activation_kind.h", device + "pointwise.cuh",
        device + "move.cuh", device + "softmax.cuh", device + "letters.cuh"}},
      {"kernels/sums.cuh",
       "sums of columns (bias gradients) and of squares",
       {device + "sums.cuh"}},
      {"kernels/matmul.cuh",
       "matrix products by cuBLASLt",
       {backend + "matrix_shape.h", device + "matrix_product.h"}},
      {"kernels/norm.cuh",
       "LayerNorm and RMSNorm, with their gradients",
       {device + "norm.cuh", device + "norm_grad.cuh"}},
      {"kernels/embedding.cuh",
       "token and position embeddings, with their gradients",
       {device + "embedding.cuh", device + "position.cuh"}},
      {"kernels/attention.cuh",
       "fused attention and its gradient; RoPE",
       {backend + "relative_position.h", device + "attention_tiles.cuh",
        device + "core_tiles.cuh", device + "core_masks.cuh",
        device + "attention.cuh", device + "attention_slopes.cuh",
        device + "attention_grad_cores.cuh", device + "attention_grad.cuh",
        device + "rope.cuh"}},
      {"kernels/experts.cuh",
       "mixture of experts: gate, balance loss, dispatch, combine",
       {device + "gate.cuh", device + "balance.cuh", device + "experts.cuh"}},
      {"kernels/loss.cuh",
       "cross-entropy over a vocabulary that may be sharded",
       {device + "loss.cuh"}},
      {"kernels/adamw.cuh",
       "AdamW; clipping and unscaling of gradients",
       {device + "adamw.cuh"}},
      {"rank.cuh",
       "a rank: its memory, streams and communicators",
       {standalone + "streams.cuh", standalone + "rank.cuh"}},
      {"updates.cuh",
       "AdamW of many parameters by one launch",
       {standalone + "updates.cuh"}},
      {"products.cuh",
       "matrix products of a rank, and what follows them",
       {standalone + "products.cuh"}},
      {"collectives.cuh",
       "NCCL collectives, messages between stages",
       {standalone + "collectives.cuh"}},
      {"data.cuh",
       "training data: synthetic, or a prepared file",
       {standalone + "samples.cuh"}},
      {"launch.cuh",
       "how ranks start and find each other",
       {standalone + "meeting.h", standalone + "start.cuh"}},
      {"training.cuh",
       "options, the CUDA graph, the loop over steps",
       {backend + "long_sum.h", training + "gradient_factor.h",
        training + "loss_scaler.h", training + "loss_scaler.cpp",
        training + "update_rule.h", training + "update_rule.cpp",
        training + "initial_values.h", training + "initial_values.cpp",
        training + "learning_rate.h", training + "learning_rate.cpp",
        standalone + "train.cuh"}},
  };
  return kRows;
}

const SourceFile *find(const std::string &path) {
  for (const SourceFile &file : sourceFiles())
    if (path == file.path)
      return &file;
  return nullptr;
}

std::string textOf(const std::string &path) {
  const SourceFile *file = find(path);
  if (!file)
    throw std::logic_error(path + " is not among the files of a program");
  return file->text;
}

std::size_t rowOf(const std::string &path) {
  const std::vector<HeaderRow> &rows = headerRows();
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (std::ranges::find(rows[r].files, path) != rows[r].files.end())
      return r;
  throw std::logic_error(path + " belongs to no header of a program");
}

struct Body {
  std::vector<std::string> includes; ///< paths of included runtime files
  std::set<std::string> system;      ///< system headers: "cstdint"
  std::string text;                  ///< without includes and guard
};

Body bodyOf(const std::string &path) {
  Body body;
  std::istringstream lines(textOf(path));
  std::string line, guard;
  bool isPastTitle = false;
  while (std::getline(lines, line)) {
    const std::string_view view = line;
    if (view.starts_with("#include \"")) {
      body.includes.emplace_back(view.substr(10, view.rfind('"') - 10));
    } else if (view.starts_with("#include <")) {
      body.system.insert(std::string(view.substr(10, view.rfind('>') - 10)));
    } else if (view.starts_with("#ifndef MTPLAN_")) {
      guard = view.substr(8);
    } else if (!guard.empty() &&
               (view == "#define " + guard || view == "#endif // " + guard)) {
      isPastTitle = true;
    } else if (isPastTitle || !view.starts_with("//===")) {
      // Only the lines of the title that begin with "//===" are omitted.
      if (!view.empty() || (!body.text.empty() && !body.text.ends_with("\n\n")))
        body.text += line + '\n';
    }
  }
  while (body.text.ends_with("\n\n"))
    body.text.pop_back();
  return body;
}

/// Collects files and all files that they include. Included files come first.
class Closure {
public:
  void add(const std::string &path) {
    if (!seen.insert(path).second)
      return;
    for (const std::string &other : bodyOf(path).includes)
      add(other);
    files.push_back(path);
    const std::string::size_type dot = path.rfind('.');
    const std::string source = path.substr(0, dot) + ".cpp";
    if (path.substr(dot) == ".h" && find(source))
      add(source);
  }

  std::vector<std::string> files;

private:
  std::set<std::string> seen;
};

std::string includeOf(const std::string &from, const std::string &to) {
  const auto folderOf = [](const std::string &path) {
    return path.substr(
        0, path.find('/') == std::string::npos ? 0 : path.find('/') + 1);
  };
  const std::string folder = folderOf(from);
  return !folder.empty() && folderOf(to) == folder ? to.substr(folder.size())
                                                   : to;
}

ProgramHeader joined(std::size_t row, const std::vector<std::string> &files) {
  const HeaderRow &header = headerRows()[row];
  std::set<std::string> system;
  std::set<std::size_t> others;
  std::string bodies;
  for (const std::string &path : files) {
    const Body body = bodyOf(path);
    system.insert(body.system.begin(), body.system.end());
    for (const std::string &other : body.includes)
      if (const std::size_t its = rowOf(other); its != row)
        others.insert(its);
    bodies += "\n//===- from mtplan's " + path + "\n" + body.text;
  }
  std::string text = std::string("// ") + header.path + ": " + header.summary +
                     ".\n#pragma once\n\n";
  for (const std::string &one : system)
    text += "#include <" + one + ">\n";
  if (!others.empty() && !system.empty())
    text += '\n';
  for (const std::size_t other : others)
    text += "#include \"" + includeOf(header.path, headerRows()[other].path) +
            "\"\n";
  return {header.path, header.summary, text + bodies};
}

} // namespace

std::vector<ProgramHeader> programHeaders(const std::set<std::string> &files) {
  Closure closure;
  for (const std::string &path : files)
    closure.add(path);
  std::vector<ProgramHeader> headers;
  for (std::size_t row = 0; row < headerRows().size(); ++row) {
    std::vector<std::string> own;
    std::ranges::copy_if(
        closure.files, std::back_inserter(own),
        [&](const std::string &path) { return rowOf(path) == row; });
    if (own.empty())
      continue;
    headers.push_back(joined(row, own));
    headers.back().isNeeded = std::ranges::any_of(
        own, [&](const std::string &path) { return files.contains(path); });
  }
  return headers;
}

} // namespace mtplan::codegen
