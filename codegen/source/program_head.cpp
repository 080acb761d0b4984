//===- program_head.cpp - The comment at the head of train.cu -------------===//

#include "codegen/source/program_head.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/source/text.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

const char *const kRule = "//===-----------------------------------------------"
                          "-----------------------===//";

class ProgramHead {
public:
  ProgramHead(const Plan &thePlan, const std::vector<ProgramHeader> &theHeaders,
              const std::string &theStep)
      : plan(thePlan), headers(theHeaders), step(theStep) {}

  std::string write() const {
    Text title;
    title.line("//===- train.cu - Trains " + plan.model + " on " +
               std::to_string(plan.ranks) +
               (plan.ranks == 1 ? " GPU" : " GPUs"));
    title.line("//");
    std::string mesh;
    for (const Axis &axis : plan.mesh)
      if (axis.size > 1)
        mesh += (mesh.empty() ? "" : ", ") + axis.name + " " +
                std::to_string(axis.size);
    title.comment(
        "Written by mtplan. Mesh: " + (mesh.empty() ? "one rank" : mesh) +
        "; " + std::to_string(plan.stages.size()) +
        (plan.stages.size() == 1 ? " stage, " : " stages, ") +
        std::to_string(plan.microBatches) +
        (plan.microBatches == 1 ? " micro-batch" : " micro-batches") +
        ", global batch " + std::to_string(plan.globalBatch) + ", sequence " +
        std::to_string(plan.sequence) + ".");
    title.line("//");
    title.comment("Build: cmake -B build && cmake --build build");
    title.comment("Run:   build/train --steps 100 --data synthetic");
    title.line("//        (a thread for each GPU of this machine; or start a "
               "process for each");
    title.line("//        rank by torchrun, mpirun or srun)");
    title.line("//");
    writeRankMap(title);
    title.line("//");
    title.comment(
        "This file is the training step. Start at the end: main() starts the "
        "ranks, and runRank() gives the stage's functions to the loop over "
        "steps in training.cuh. A stage's forwardAndBackward() is its "
        "schedule. It calls forward() and backward(), which take one "
        "micro-batch through the stage, and these call a function for each "
        "segment of the model, such as h_forward()." +
        whereUsed(
            "template <typename buf>",
            " A template is shared by stages, or by parts of a stage, and "
            "`buf` is the struct in memory.cuh with the buffers and "
            "constants of one of them.") +
        whereUsed("int run)", " A stage has several parts, which are virtual "
                              "stages, and the stage after the last one is "
                              "the first."));
    title.line("//");
    title.comment(
        "A step, captured() in training.cuh: begin(), which clears the step's "
        "sums -> forwardAndBackward() here, which also sums gradients over "
        "ranks -> squares() in parameters.cuh, which counts each gradient on "
        "one rank -> agree() in training.cuh, the all-gather of these sums and "
        "of the loss over all ranks, and the clip factor -> update() here, "
        "AdamW of gradient x factor" +
        whereUsed("send(now", " -> joinLines(), which waits for the last "
                              "sends") +
        ". All of this runs once, while the step is captured as a CUDA graph: "
        "the functions queue kernels and collectives, and every step launches "
        "the graph, on the step's inputs, learning rate and number." +
        whereUsed("for (int ", " So loops over layers and micro-batches are "
                               "unrolled in the graph.") +
        whereUsed("now.microBatch !=",
                  " A condition on now.microBatch is decided in the capture: "
                  "the first micro-batch overwrites a gradient and later ones "
                  "add to it, so no gradient is cleared."));
    title.line("//");
    title.comment(
        "`now` is a call of such a function: its rank, its layer, counted from "
        "the first of the layers that the function runs in a row, and its "
        "micro-batch. now[buf::x] is the tensor x of this call." +
        whereUsed("buf::firstLayer", " The layer of the model is firstLayer + "
                                     "now.layer.") +
        whereUsed("buf::h_output]",
                  " A layer reads h_input and leaves h_output, which is the "
                  "next layer's h_input: both are entries of one buffer. "
                  "Backward reads h_output_grad and leaves h_input_grad.") +
        whereUsed("buf::layer_input", " layer_input is what the embedding or "
                                      "the layer before left.") +
        whereUsed("_recompute(", " h_recompute computes a layer's forward "
                                 "again, before its backward, into tensors "
                                 "whose names end in _again.") +
        whereUsed("row.", " A loop over a table of `buf` treats the tensors of "
                          "each row alike.") +
        whereUsed("apart(", " apart(x, y) is the number of elements from the "
                            "start of x to the start of y.") +
        " Comments have the model's operator, then its shapes on one rank" +
        whereUsed("[B/dp, T, C]", ": [B/dp, T, C] is a tensor whose samples "
                                  "are split over the ranks of dp") +
        "." + partText());
    if (step.find("multiply") != std::string::npos) {
      title.line("//");
      title.comment(
          "A product is c = a b, of m x k and k x n elements. The first list "
          "has its sizes, and for each matrix the steps from row to row and "
          "from column to column: .a = {k, 1} is contiguous, {1, m} is "
          "transposed. The second list has the tensors." +
          whereUsed(".batches", " A batch repeats the product at equal "
                                "distances: the third number of .a, .b and .c "
                                "is the step from one matrix to the next, 0 "
                                "if all products read the same one, and "
                                ".vectorStep is that of .bias and .sums.") +
          whereUsed(".kept", " .kept is the argument of gelu.") +
          whereUsed(".sums", " .sums receives the sum of the named operand "
                             "over k, a bias gradient.") +
          whereUsed(".adds", " .adds adds .before to the product or, without "
                             ".before, the contents of c" +
                                 whereUsed(".sums", " and .sums") + ".") +
          whereUsed(".inputs = ", " Without .inputs or .result the type is "
                                  "f32."));
    }
    if (step.find("now.on(") != std::string::npos) {
      title.line("//");
      title.comment(
          "now.stream() is the stream that computes; now.on(s) queues on "
          "stream s. now.fork() makes other streams wait for the compute "
          "stream, and now.join() makes it wait for them. now.done(s) is an "
          "event after the work queued on s so far, and now.wait(s, event) "
          "makes s wait for it." +
          whereUsed("send(now",
                    " send() copies a tensor and sends the copy on a stream "
                    "of its own, which nothing waits for until the step ends; "
                    "after receive() the compute stream waits."));
    }
    writeMemory(title);
    writeOrder(title);
    title.line("//");
    title.comment("Beside it:");
    const auto row = [&](const std::string &path, const std::string &summary) {
      constexpr std::size_t kWidth = 24;
      title.line(
          "//   " + path +
          std::string(path.size() < kWidth ? kWidth - path.size() : 1, ' ') +
          summary);
    };
    row("dimensions.h", "B, T, C and the other sizes; axes, groups, streams");
    row("memory.cuh", "arenas, buffers and tables of each stage");
    row("parameters.cuh", "initial values, gradient norm");
    for (const ProgramHeader &header : headers)
      row(header.path, header.summary);
    title.line(kRule);
    title.line();
    return title.text();
  }

private:
  /// If a segment is divided over stages, returns a sentence about the names of
  /// its pieces; otherwise "".
  std::string partText() const {
    std::set<std::string> segments;
    for (const Stage &stage : plan.stages)
      for (const Program &program : stage.programs) {
        const std::string name = program.name.substr(0, program.name.find('.'));
        const std::size_t end = name.rfind('_');
        if (end != std::string::npos &&
            segments.contains(name.substr(0, end)) &&
            step.find(" " + name + "_") != std::string::npos)
          return " In " + name + ", " + name.substr(end + 1) +
                 " is the layer of the model with which these layers begin; a "
                 "template has the name of the first layers that use it.";
        segments.insert(name);
      }
    return "";
  }

  void writeMemory(Text &title) const {
    const bool hasSlots =
        std::ranges::any_of(plan.stages, [](const Stage &stage) {
          return std::ranges::any_of(
              stage.buffers, [](const Buffer &one) { return one.slots > 1; });
        });
    title.line("//");
    title.comment(
        "memory.cuh has the buffers by arena. kParameters holds the weights "
        "that kernels read, and kOptimizer master weights and moments. "
        "kGradients lives from the first micro-batch to the update. "
        "kActivations holds what backward reads of its micro-batch's forward" +
        std::string(hasSlots ? ", in slot now.microBatch % slots of a buffer "
                               "with several"
                             : "") +
        ", and may hold reduced gradients after the last backward. kWorkspace "
        "holds everything else, such as the gradients of activations, in bytes "
        "that are shared by turns. No arena holds the scratch memory of "
        "kernels" +
        whereUsed("send(now", " or the copies of sent tensors") + ".");
  }

  /// Writes the order in which each stage runs the forward (F) and the backward
  /// (B) of the micro-batches. Writes nothing for a single stage, for more than
  /// kMost micro-batches or for virtual stages.
  void writeOrder(Text &title) const {
    constexpr int kMost = 8;
    if (plan.stages.size() == 1 || plan.microBatches > kMost)
      return;
    std::vector<std::string> lines;
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const Stage &stage = plan.stages[s];
      std::string line = "  stage " + std::to_string(s) + ":", last;
      std::set<std::string> seen;
      for (const ScheduleEntry &entry : stage.schedule) {
        const std::string &name = stage.programs[indexed(entry.program)].name;
        const std::string task = (name.ends_with(".forward") ? " F" : " B") +
                                 std::to_string(entry.microBatch);
        if (task == last)
          continue;
        if (!seen.insert(task).second)
          return; // virtual stages repeat a micro-batch
        line += last = task;
      }
      lines.push_back(line);
    }
    title.line("//");
    title.comment("Order of forward (F) and backward (B) by micro-batch:");
    for (const std::string &line : lines)
      title.comment(line);
  }

  std::string whereUsed(const char *mark, const std::string &words) const {
    return step.find(mark) == std::string::npos ? "" : words;
  }

  void writeRankMap(Text &title) const {
    if (plan.ranks == 1)
      return;
    title.comment("Ranks:");
    constexpr std::size_t kMostStages = 4, kMostCommunicators = 8;
    std::vector<std::string> stages;
    for (std::size_t s = 0; s < plan.stages.size(); ++s)
      stages.push_back("stage " + std::to_string(s) + ": " +
                       ranksText(plan.stages[s].ranks));
    for (const std::string &line : shortened(std::move(stages), kMostStages))
      title.comment(line, "  ");
    for (const Group &group : plan.groups) {
      std::vector<std::string> ranks;
      ranks.reserve(group.communicators.size());
      for (const std::vector<int> &one : group.communicators)
        ranks.push_back(ranksText(one));
      std::string all;
      for (const std::string &one :
           shortened(std::move(ranks), kMostCommunicators))
        all += (all.empty() ? "" : ", ") + one;
      title.comment(group.name + ": " + all, "  ");
    }
  }

  /// Shortens a list of more than `most` items to the first items, "..." and
  /// the last item.
  static std::vector<std::string> shortened(std::vector<std::string> all,
                                            std::size_t most) {
    if (all.size() <= most)
      return all;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(most - 2),
              all.end() - 1);
    all.insert(all.end() - 1, "...");
    return all;
  }

  /// Returns "0-3" for consecutive ranks, else "{0 2 4}".
  static std::string ranksText(const std::vector<int> &ranks) {
    if (ranks.size() > 1 &&
        ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size()))
      return std::to_string(ranks.front()) + "-" + std::to_string(ranks.back());
    std::string all;
    for (const int rank : ranks)
      all += (all.empty() ? "" : " ") + std::to_string(rank);
    return "{" + all + "}";
  }

  const Plan &plan;
  const std::vector<ProgramHeader> &headers;
  const std::string &step;
};

} // namespace

std::string programHead(const Plan &plan,
                        const std::vector<ProgramHeader> &headers,
                        const std::string &step) {
  return ProgramHead(plan, headers, step).write();
}

} // namespace mtplan::codegen
