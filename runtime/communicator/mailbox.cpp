//===- mailbox.cpp - Messages between threads -----------------------------===//

#include "runtime/communicator/mailbox.h"

#include "runtime/communicator/call.h"
#include "runtime/communicator/reduce.h"

namespace mtplan::runtime {

Mailbox::Mailbox(Hub &itsHub, int itsOwner) : hub(itsHub), owner(itsOwner) {
  hub.add(gate);
}

void Mailbox::send(const std::string &label, const void *data,
                   std::int64_t bytes, int from, int channelNumber) {
  Channel *channel = nullptr;
  Request *request = nullptr;
  Message message;
  {
    const std::lock_guard lock(mutex);
    channel = &channels[{from, channelNumber}];
    request = std::exchange(channel->request, nullptr);
    if (request)
      request->state = Request::taken;
    else if (!channel->spare.empty()) {
      message.data = std::move(channel->spare.back());
      channel->spare.pop_back();
    }
  }
  if (request) {
    // The receiver stays until the message is delivered.
    const auto words =
        mismatchOfTransfer(from, owner, channelNumber, label, bytes,
                           request->label, request->bytes);
    if (words)
      request->mismatch = *words;
    else
      copyRows(request->data, bytes, data, bytes, 1, bytes);
    request->state = Request::delivered;
    gate.wake();
    if (words)
      throw CommunicationError(*words);
    return;
  }
  message.label = label;
  message.bytes = bytes;
  if (message.data.size() < static_cast<std::size_t>(bytes))
    message.data = std::vector<std::byte>(bytes);
  copyRows(message.data.data(), bytes, data, bytes, 1, bytes);
  {
    const std::lock_guard lock(mutex);
    channel->messages.push_back(std::move(message));
    if (Request *const late = std::exchange(channel->request, nullptr))
      late->state = Request::queued;
  }
  gate.wake();
}

void Mailbox::receive(const std::string &label, void *data, std::int64_t bytes,
                      int from, int channelNumber) {
  Channel *channel = nullptr;
  Request request{label, data, bytes, {Request::open}, {}};
  {
    const std::lock_guard lock(mutex);
    channel = &channels[{from, channelNumber}];
    if (channel->messages.empty())
      channel->request = &request;
    else
      request.state = Request::queued;
  }
  Hub::Await wait;
  wait.rank = owner;
  wait.what = [&] { return wordsOfReceive(label, bytes, from, channelNumber); };
  wait.missing = [&] {
    return request.state == Request::open ? std::vector{from}
                                          : std::vector<int>();
  };
  wait.withdraw = [&] {
    const std::lock_guard lock(mutex);
    if (request.state != Request::open)
      return false;
    channel->request = nullptr;
    return true;
  };
  hub.await(gate, wait, [&] { return request.state != Request::open; });
  hub.awaitSurely(gate, [&] { return request.state != Request::taken; });
  if (request.state == Request::delivered) {
    if (!request.mismatch.empty())
      throw CommunicationError(request.mismatch);
    return;
  }

  Message message;
  {
    const std::lock_guard lock(mutex);
    message = std::move(channel->messages.front());
    channel->messages.pop_front();
  }
  if (const auto words =
          mismatchOfTransfer(from, owner, channelNumber, message.label,
                             message.bytes, label, bytes))
    throw CommunicationError(*words);
  copyRows(data, bytes, message.data.data(), bytes, 1, bytes);
  const std::lock_guard lock(mutex);
  channel->spare.push_back(std::move(message.data));
}

std::optional<std::string> Mailbox::leftover() {
  const std::lock_guard lock(mutex);
  for (const auto &[from, channel] : channels)
    if (!channel.messages.empty()) {
      const Message &first = channel.messages.front();
      return "rank " + std::to_string(owner) + " ended without " +
             wordsOfReceive(first.label, first.bytes, from.first, from.second);
    }
  return std::nullopt;
}

} // namespace mtplan::runtime
