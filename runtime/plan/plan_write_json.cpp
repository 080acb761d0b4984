//===- plan_write_json.cpp - Writes an executable plan --------------------===//
//
// Every buffer, parameter and instruction is on a separate line, so that two
// plans can be compared line by line. Members with default values are left out
// where docs/executable-plan.md allows this.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/sync_file.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

using nlohmann::json;

namespace {

// Reports a value that JSON cannot hold. Each function through which the
// exception passes prepends its part of the JSON pointer.
struct Fault {
  std::string pointer;
  std::string what;
};

std::string written(std::int64_t value) { return std::to_string(value); }

std::string written(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const json::exception &) {
    throw Fault{{}, "must be UTF-8"};
  }
}

// Returns the number with a decimal point or an exponent, so that readers
// recognise a double.
std::string written(double value) {
  if (!std::isfinite(value))
    throw Fault{{},
                "must be a finite number, got " + std::to_string(value) +
                    "; write it as a string"};
  return json(value).dump();
}

// Returns the items as an array, with `between` after each comma.
template <typename Items, typename Write>
std::string array(const Items &items, Write write,
                  std::string_view between = " ") {
  std::string text = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0)
      (text += ',') += between;
    try {
      text += write(items[i]);
    } catch (Fault &fault) {
      fault.pointer.insert(0, "/" + std::to_string(i));
      throw;
    }
  }
  return text += ']';
}

template <typename Number>
std::string numbers(const std::vector<Number> &list) {
  return array(list, [](Number value) { return written(std::int64_t{value}); });
}

template <typename Items, typename Write>
std::string lines(const Items &items, Write write) {
  return items.empty() ? "[]" : "[\n" + array(items, write, "\n").substr(1);
}

// Builds an object on one line, or with a line for each member.
class Members {
public:
  explicit Members(std::string_view separator = ", ") : between(separator) {}

  template <typename Write> Members &with(const char *key, Write write) {
    if (text.size() > 1)
      text += between;
    ((text += '"') += key) += "\": ";
    try {
      text += write();
    } catch (Fault &fault) {
      fault.pointer.insert(0, std::string("/") + key);
      throw;
    }
    return *this;
  }
  Members &add(const char *key, std::int64_t value) {
    return with(key, [&] { return written(value); });
  }
  Members &add(const char *key, std::string_view value) {
    return with(key, [&] { return written(value); });
  }
  Members &unless(std::int64_t usual, const char *key, std::int64_t value) {
    return value == usual ? *this : add(key, value);
  }
  std::string close() { return std::move(text += '}'); }

private:
  std::string_view between;
  std::string text = "{";
};

std::string tensor(const Tensor &tensor) {
  Members members;
  members.add("buffer", tensor.buffer)
      .unless(0, "entry", tensor.entry)
      .unless(0, "entry_step", tensor.entryStep)
      .add("type", wordOf(tensor.type))
      .with("shape", [&] { return numbers(tensor.shape); });
  if (!tensor.split.empty())
    members.with("split", [&] { return array(tensor.split, numbers<int>); });
  return members.close();
}

std::string setting(const Setting &setting) {
  try {
    return written(setting.name) + ": " +
           std::visit([](const auto &value) { return written(value); },
                      setting.value);
  } catch (Fault &fault) {
    fault.pointer.insert(0, "/" + base::pointerToken(setting.name));
    throw;
  }
}

std::string settings(const std::vector<Setting> &settings) {
  std::string text = "{";
  for (const Setting &one : settings)
    (text += text.size() > 1 ? ", " : "") += setting(one);
  return text += '}';
}

// Adds the members that are specific to the kind of instruction.
struct What {
  Members &members;

  void operator()(const KernelCall &call) {
    members.add("kernel", call.kernel);
    if (!call.settings.empty())
      members.with("settings", [&] { return settings(call.settings); });
  }
  void operator()(const Collective &call) {
    members.add("collective", wordOf(call.kind)).add("group", call.group);
    if (reduces(call.kind))
      members.add("reduction", wordOf(call.reduction));
    if (gathers(call.kind))
      members.add("gathered", call.gathered);
    if (scatters(call.kind))
      members.add("scattered", call.scattered);
  }
  void operator()(const Transfer &transfer) {
    members.add(transfer.sends ? "send_to" : "receive_from", transfer.stage)
        .add("channel", transfer.channel);
  }
  void operator()(const Input &input) {
    members.add("input", input.label)
        .with("dims",
              [&] {
                return array(input.dims, [](const std::string &dim) {
                  return written(dim);
                });
              })
        .unless(0, "limit", input.limit);
  }
  void operator()(const Report &report) { members.add("report", report.label); }
};

std::string instruction(const Instruction &instruction) {
  Members members;
  members.add("label", instruction.label);
  std::visit(What{members}, instruction.what);
  auto tensors = [&](const char *key, const std::vector<Tensor> &list) {
    if (!list.empty())
      members.with(key, [&] { return array(list, tensor); });
  };
  tensors("inputs", instruction.inputs);
  tensors("outputs", instruction.outputs);
  members.add("stream", instruction.stream);
  if (!instruction.waits.empty())
    members.with("waits", [&] { return numbers(instruction.waits); });
  if (instruction.overlapped)
    members.with("overlapped", [] { return std::string("true"); });
  return members.close();
}

std::string batch(const Batch &batch) {
  Members members;
  members.with("instructions", [&] { return numbers(batch.instructions); });
  if (batch.ofAllCopies)
    members.with("of_all_copies", [] { return std::string("true"); });
  return members.close();
}

std::string program(const Program &program) {
  Members members;
  members.add("name", program.name)
      .unless(0, "first_copy", program.firstCopy)
      .with("instructions",
            [&] { return lines(program.instructions, instruction); });
  if (!program.batches.empty())
    members.with("batches", [&] { return array(program.batches, batch); });
  return members.close();
}

// Returns [program, micro-batch, first, count, step] without trailing default
// values.
std::string entry(const ScheduleEntry &entry) {
  std::vector<int> values = {entry.program, entry.microBatch, entry.first,
                             entry.count, entry.step};
  const std::vector<int> usual = {0, 0, 0, 1, 1};
  while (values.size() > 2 && values.back() == usual[values.size() - 1])
    values.pop_back();
  std::string text = numbers(values);
  std::erase(text, ' ');
  return text;
}

std::string parameter(const Parameter &parameter) {
  Members members;
  members.add("label", parameter.label)
      .add("init", parameter.init)
      .unless(0, "first_copy", parameter.firstCopy)
      .unless(1, "copies", parameter.copies);
  auto add = [&](const char *key, const Tensor &value) {
    members.with(key, [&] { return tensor(value); });
  };
  add("value", parameter.value);
  add("gradient", parameter.gradient);
  if (parameter.master)
    add("master", *parameter.master);
  add("first_moment", parameter.firstMoment);
  add("second_moment", parameter.secondMoment);
  if (!parameter.alike.empty())
    members.with("alike", [&] { return numbers(parameter.alike); });
  if (parameter.countedElsewhere)
    members.with("counted_elsewhere", [] { return std::string("true"); });
  if (!parameter.unpadded.empty())
    members.with("unpadded", [&] { return numbers(parameter.unpadded); });
  return members.close();
}

std::string arena(const Arena &arena) {
  return Members()
      .add("class", wordOf(arena.memoryClass))
      .add("size", arena.size)
      .close();
}

std::string buffer(const Buffer &buffer) {
  return Members()
      .add("name", buffer.name)
      .add("arena", buffer.arena)
      .add("offset", buffer.offset)
      .add("size", buffer.size)
      .unless(1, "entries", buffer.entries)
      .unless(0, "entry_stride", buffer.entryStride)
      .unless(1, "slots", buffer.slots)
      .unless(0, "slot_stride", buffer.slotStride)
      .close();
}

std::string stage(const Stage &stage) {
  auto schedule = [](const std::vector<ScheduleEntry> &entries) {
    return array(entries, entry, "");
  };
  return Members(",\n")
      .with("ranks", [&] { return numbers(stage.ranks); })
      .with("arenas", [&] { return lines(stage.arenas, arena); })
      .with("buffers", [&] { return lines(stage.buffers, buffer); })
      .with("parameters", [&] { return lines(stage.parameters, parameter); })
      .with("programs", [&] { return lines(stage.programs, program); })
      .with("schedule", [&] { return schedule(stage.schedule); })
      .with("reduce", [&] { return schedule(stage.reduce); })
      .with("apply", [&] { return schedule(stage.apply); })
      .close();
}

std::string axis(const Axis &axis) {
  return Members().add("name", axis.name).add("size", axis.size).close();
}

std::string group(const Group &group) {
  return Members()
      .add("name", group.name)
      .with("communicators",
            [&] { return array(group.communicators, numbers<int>); })
      .close();
}

} // namespace

std::string planText(const Plan &plan) {
  try {
    return Members(",\n")
               .add("version", plan.version)
               .add("model", plan.model)
               .add("ranks", plan.ranks)
               .with("mesh", [&] { return array(plan.mesh, axis); })
               .with("groups", [&] { return lines(plan.groups, group); })
               .with("streams",
                     [&] {
                       return array(plan.streams, [](const std::string &name) {
                         return written(name);
                       });
                     })
               .add("micro_batches", plan.microBatches)
               .add("global_batch", plan.globalBatch)
               .add("sequence", plan.sequence)
               .add("layers", plan.layers)
               .with("stages", [&] { return lines(plan.stages, stage); })
               .close() +
           '\n';
  } catch (const Fault &fault) {
    throw PlanError(fault.pointer + ": " + fault.what);
  }
}

namespace {

// Returns whether the whole text was written. On failure, errno holds the
// error.
bool writeWhole(const std::filesystem::path &path, const std::string &text) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return false;
  const bool isWritten =
      std::fwrite(text.data(), 1, text.size(), file) == text.size();
  // fflush and fsync may be the first calls to fail on a full disk.
  const bool isSynced = isWritten && std::fflush(file) == 0 &&
                        base::syncOpen(::fileno(file)) == 0;
  const int error = errno;
  const bool isClosed = std::fclose(file) == 0;
  if (!isSynced)
    errno = error;
  return isSynced && isClosed;
}

} // namespace

void writePlanFile(const std::filesystem::path &path, const Plan &plan) {
  std::string text;
  try {
    text = planText(plan);
  } catch (const PlanError &error) {
    throw PlanError(path.string() + ": " + error.what());
  }
  std::filesystem::path fresh = path;
  fresh += ".part";
  const bool isWritten = writeWhole(fresh, text);
  std::error_code error(isWritten ? 0 : errno, std::generic_category());
  if (isWritten)
    std::filesystem::rename(fresh, path, error);
  if (isWritten && !error)
    error.assign(base::syncFolderOf(path), std::generic_category());
  if (isWritten && !error)
    return;
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  throw PlanError(
      path.string() +
      (isWritten ? ": cannot be replaced: " : ": cannot be written: ") +
      std::generic_category().message(error.value()));
}

} // namespace mtplan::runtime
